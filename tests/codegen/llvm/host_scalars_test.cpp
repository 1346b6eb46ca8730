// The host generator gives bit for bit what ir/scalar.h says: every operator and conversion, at every dtype.
#include "codegen/codegen.h"
#include "tests/codegen/llvm/scalar_cases.h"

namespace tilewright {

namespace {

void run_on_host(const ScalarCase& scalars) {
  const Plan plan = scalars.plan(false);
  const auto count = scalars.a.size();
  std::vector<std::vector<std::byte>> memory;
  for (const Param& param : plan.params) {
    const auto bytes = static_cast<std::size_t>(bytes_of(param.dtype));
    memory.emplace_back(count * bytes);
    if (param.kind != ParamKind::In) continue;
    const std::vector<Scalar>& input = param.name == "A" ? scalars.a : scalars.b;
    for (std::size_t n = 0; n < count; ++n) store_scalar(param.dtype, memory.back().data() + n * bytes, input[n]);
  }
  std::vector<void*> tensors;
  for (std::vector<std::byte>& tensor : memory) tensors.push_back(tensor.data());
  const auto kernel = compile_for_host(plan, *kernels_of(plan).at(0));
  const std::vector<std::int64_t> dims = {static_cast<std::int64_t>(count)};
  REQUIRE(kernel->iterations(dims) == dims[0]);
  std::int64_t error_word[3] = {0, 0, 0};
  kernel->run(tensors, dims, 0, dims[0] / 3, error_word);
  kernel->run(tensors, dims, dims[0] / 3, dims[0], error_word);
  scalars.check([&](std::size_t column, std::size_t n) {
    const Dtype dtype = scalars.columns[column].dtype;
    return load_scalar(dtype, memory[column + 2].data() + n * static_cast<std::size_t>(bytes_of(dtype)));
  });
}

}  // namespace

TEST_SUITE("codegen") {
  TEST_CASE("llvm host: binary operators are those of ir/scalar.h at every dtype") {
    for (Dtype dtype : all_element_dtypes)
      if (dtype != Dtype::Bool) run_on_host(binary_case(dtype));
  }

  TEST_CASE("llvm host: conversions are those of ir/scalar.h between all dtypes") {
    for (Dtype from : all_element_dtypes) run_on_host(conversion_case(from));
  }

  TEST_CASE("llvm host: negation and exact functions are those of ir/scalar.h") {
    for (Dtype dtype : {Dtype::F64, Dtype::F32}) run_on_host(function_case(dtype));
  }

  TEST_CASE("llvm host: library functions are those of ir/scalar.h") {
    for (Dtype dtype : {Dtype::F64, Dtype::F32, Dtype::BF16}) run_on_host(library_case(dtype));
  }
}

}  // namespace tilewright
