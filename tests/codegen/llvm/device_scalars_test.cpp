// On a GPU, both generators give bit for bit what ir/scalar.h says: every operator and conversion, at every dtype.
#include "runtime/compile.h"
#include "runtime/cuda_device.h"
#include "tests/codegen/llvm/scalar_cases.h"

namespace tilewright {

namespace {

void run_on_device(const ScalarCase& scalars, Backend backend) {
  const Plan plan = scalars.plan(true);
  const auto count = static_cast<std::int64_t>(scalars.a.size());
  std::map<std::string, HostTensor> inputs;
  for (const auto& [name, values] : {std::pair("A", &scalars.a), std::pair("B", &scalars.b)}) {
    HostTensor tensor = make_tensor(scalars.dtype, {count});
    const auto bytes = static_cast<std::size_t>(bytes_of(scalars.dtype));
    for (std::size_t n = 0; n < values->size(); ++n)
      store_scalar(scalars.dtype, tensor.data.data() + n * bytes, (*values)[n]);
    inputs.emplace(name, std::move(tensor));
  }
  Arguments arguments = bind_arguments(plan, std::move(inputs));
  CompileOptions options;
  options.backend = backend;
  options.arch = use_gpu().arch;
  run_on_cuda(compile_plan(plan, options), arguments);
  scalars.check([&](std::size_t column, std::size_t n) {
    const Dtype dtype = scalars.columns[column].dtype;
    return load_scalar(dtype, arguments.tensors.at(fmt::format("C{}", column)).data.data() +
                                  n * static_cast<std::size_t>(bytes_of(dtype)));
  });
}

bool is_fp8(Dtype dtype) { return dtype == Dtype::E4M3 || dtype == Dtype::E5M2; }

}  // namespace

TEST_SUITE("codegen gpu") {
  TEST_CASE("llvm: binary operators on the device are those of ir/scalar.h") {
    for (Dtype dtype : all_element_dtypes)
      if (dtype != Dtype::Bool) run_on_device(binary_case(dtype), Backend::Llvm);
  }

  TEST_CASE("llvm: conversions on the device are those of ir/scalar.h") {
    for (Dtype from : all_element_dtypes) run_on_device(conversion_case(from), Backend::Llvm);
  }

  TEST_CASE("llvm: negation and exact functions on the device are those of ir/scalar.h") {
    for (Dtype dtype : {Dtype::F64, Dtype::F32}) run_on_device(function_case(dtype), Backend::Llvm);
  }

  TEST_CASE("CUDA C: binary operators on the device are those of ir/scalar.h") {
    for (Dtype dtype : all_element_dtypes)
      if (dtype != Dtype::Bool && !is_fp8(dtype)) run_on_device(binary_case(dtype), Backend::Nvrtc);
  }
}

}  // namespace tilewright
