// print_cuda: a thread-stage kernel as readable CUDA C that NVRTC compiles without any header. This file prints the
// frame (launch comment, signature, index variables, shared memory); cuda_stmt.cpp and cuda_expr.cpp print what is in
// it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/cuda_printer.h"
#include "codegen/cuda_types.h"
#include "ir/diagnostic.h"

namespace tilewright {

namespace {

// The names that every kernel has, and what they are in CUDA C. `thread` is the linear index in the block.
struct IndexVariable {
  std::string_view name;
  std::string_view value;  // of a 1-D block where it depends on the block's shape
};
constexpr auto index_variables = std::to_array<IndexVariable>({
    {"thread.x", "threadIdx.x"},
    {"thread.y", "threadIdx.y"},
    {"thread.z", "threadIdx.z"},
    {"thread", ""},
    {"block.x", "blockIdx.x"},
    {"block.y", "blockIdx.y"},
    {"block.z", "blockIdx.z"},
    {"block", "blockIdx.x"},
    {"lane", ""},
    {"warp", ""},
    {"cluster.rank", "rank_in_cluster()"},
});

bool is_index_variable(const std::string& name) {
  return std::any_of(index_variables.begin(), index_variables.end(),
                     [&](const IndexVariable& row) { return row.name == name; });
}

std::string extents_text(const std::vector<std::string>& parts) {
  if (parts.size() == 1) return parts[0];
  return fmt::format("({})", fmt::join(parts, ", "));
}

}  // namespace

CudaPrinter::CudaPrinter(const Plan& plan, const Kernel& kernel) : plan_(plan), kernel_(kernel) {
  if (kernel.stage != Stage::Thread)
    internal_error(fmt::format("print_cuda: kernel `{}` is not at thread stage", kernel.name));
}

void CudaPrinter::name(const std::string& ir_name) {
  if (names_.count(ir_name) != 0) return;
  std::string candidate = c_name(ir_name);
  for (int number = 2; !taken_.insert(candidate).second; ++number)
    candidate = fmt::format("{}_{}", c_name(ir_name), number);
  names_.emplace(ir_name, candidate);
}

// Names in order of first appearance, so that a collision (`i.block` beside `i_block`) is settled the same way each
// time.
void CudaPrinter::collect_names() {
  for (const std::string& argument : kernel_.launch.arguments) name(argument);
  for (const TensorMap& map : kernel_.launch.maps) name(map.name);
  walk(kernel_.body, [&](const Stmt& stmt) {
    if (const Loop* loop = as<Loop>(stmt))
      for (const Axis& axis : loop->axes) name(axis.name);
    if (const Buffer* buffer = as<Buffer>(stmt)) name(buffer->name);
    if (const Let* let = as<Let>(stmt)) name(let->name);
    return true;
  });
  walk_expressions(kernel_.body, [&](const Expr& top) {
    walk(top, [&](const Expr& e) {
      const Var* variable = as<Var>(e);
      if (variable && is_index_variable(variable->name)) {
        name(variable->name);
        index_variables_.insert(variable->name);
        nonnegative_.insert(variable->name);
      }
      return true;
    });
  });
  for (const std::string& argument : kernel_.launch.arguments) {
    if (const auto tensor = find_tensor(plan_, argument)) {
      const Param* param = find_param(plan_, argument);
      const bool by_value = param && param->kind == ParamKind::In && tensor->shape.empty();
      places_.emplace(argument, Place{by_value ? Place::Kind::ByValue : Place::Kind::Tensor, tensor->dtype, {}});
    } else {
      nonnegative_.insert(argument);  // a dim
    }
  }
}

bool CudaPrinter::is_map(const std::string& ir_name) const {
  const std::vector<TensorMap>& maps = kernel_.launch.maps;
  return std::any_of(maps.begin(), maps.end(), [&](const TensorMap& map) { return map.name == ir_name; });
}

void CudaPrinter::find_written_tensors() {
  walk(kernel_.body, [&](const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) written_.insert(store->target.buffer);
    const Instr* instr = as<Instr>(stmt);
    if (!instr) return true;
    const InstrInfo* row = find_instruction(instr->op);
    if (!row || instr->operands.empty()) return true;
    const bool is_vector = instr->op.starts_with("load.v") || instr->op.starts_with("store.v");
    // The destination comes first.
    if (const Load* destination = as<Load>(instr->operands[0])) {
      if (row->effect == Effect::Writes || row->effect == Effect::ReadsWrites)
        written_.insert(destination->access.buffer);
      if (is_vector) wide_arrays_.insert(destination->access.buffer);
    }
    if (is_vector && instr->operands.size() == 2)
      if (const Load* source = as<Load>(instr->operands[1])) wide_arrays_.insert(source->access.buffer);
    return true;
  });
}

std::string CudaPrinter::launch_comment() const {
  const LaunchHeader& launch = kernel_.launch;
  std::vector<std::string> grid;
  for (const Expr& extent : launch.grid) grid.push_back(tilewright::print(extent));
  std::vector<std::string> block;
  for (const std::int64_t extent : launch.block) block.push_back(fmt::format("{}", extent));
  std::vector<std::string> arguments = launch.arguments;
  for (const TensorMap& map : launch.maps) arguments.push_back(map.name);
  if (!plan_.error_name.empty()) arguments.push_back("error_word");
  const std::string shared =
      launch.shared_bytes > most_static_shared_bytes ? fmt::format(", {}", launch.shared_bytes) : "";
  return fmt::format("// launch {}<<<{}, {}{}>>>({})", c_name(kernel_.name), extents_text(grid), extents_text(block),
                     shared, fmt::join(arguments, ", "));
}

std::string CudaPrinter::signature() const {
  std::vector<std::string> parameters;
  for (const std::string& argument : kernel_.launch.arguments) {
    const std::string& name = c_name_of(argument);
    const auto place = places_.find(argument);
    if (place == places_.end()) {
      parameters.push_back(fmt::format("{} {}", type(Dtype::Index), name));
    } else if (place->second.kind == Place::Kind::ByValue) {
      parameters.push_back(fmt::format("{} {}", type(place->second.dtype), name));
    } else {
      const bool is_const = written_.count(argument) == 0;
      parameters.push_back(
          fmt::format("{}{}* __restrict__ {}", is_const ? "const " : "", type(place->second.dtype), name));
    }
  }
  for (const TensorMap& map : kernel_.launch.maps)
    parameters.push_back(fmt::format("const __grid_constant__ TensorMap {}", c_name_of(map.name)));
  if (!plan_.error_name.empty()) parameters.push_back("long long* error_word");
  std::int64_t threads = 1;
  for (const std::int64_t extent : kernel_.launch.block) threads *= extent;
  const std::string bounds = kernel_.launch.min_blocks > 0 ? fmt::format("{}, {}", threads, kernel_.launch.min_blocks)
                                                           : fmt::format("{}", threads);
  std::vector<std::int64_t> cluster = kernel_.launch.cluster;
  if (!cluster.empty()) cluster.resize(3, 1);
  const std::string clusters = cluster.empty() ? "" : fmt::format("__cluster_dims__({}) ", fmt::join(cluster, ", "));
  return fmt::format("extern \"C\" __global__ void {}__launch_bounds__({})\n{}({}) {{\n", clusters, bounds,
                     c_name(kernel_.name), fmt::join(parameters, ", "));
}

std::string CudaPrinter::thread_variables() const {
  const std::vector<std::int64_t>& block = kernel_.launch.block;
  const bool is_flat =
      block.size() <= 1 || std::all_of(block.begin() + 1, block.end(), [](std::int64_t extent) { return extent == 1; });
  std::string linear = "threadIdx.x";
  if (!is_flat && block.size() >= 2) linear = fmt::format("threadIdx.y * {} + threadIdx.x", block[0]);
  if (!is_flat && block.size() == 3)
    linear = fmt::format("(threadIdx.z * {} + threadIdx.y) * {} + threadIdx.x", block[1], block[0]);
  std::string text;
  for (const IndexVariable& row : index_variables) {
    if (index_variables_.count(std::string(row.name)) == 0) continue;
    std::string value(row.value);
    if (row.name == "thread") value = linear;
    if (row.name == "lane") value = is_flat ? "threadIdx.x % 32" : "(" + linear + ") % 32";
    if (row.name == "warp") value = is_flat ? "threadIdx.x / 32" : "(" + linear + ") / 32";
    text += fmt::format("  const {} {} = {};\n", type(Dtype::Index), c_name_of(std::string(row.name)), value);
  }
  return text;
}

std::string CudaPrinter::shared_declaration() const {
  const std::int64_t bytes = kernel_.launch.shared_bytes;
  bool is_placed = false;
  walk(kernel_.body, [&](const Stmt& stmt) {
    const Buffer* buffer = as<Buffer>(stmt);
    is_placed = is_placed || (buffer && buffer->space == Space::Shared && buffer->offset);
    return true;
  });
  if (!is_placed || bytes == 0) return "";
  const std::int64_t align = std::max<std::int64_t>(kernel_.launch.align, 16);
  if (bytes > most_static_shared_bytes)
    return fmt::format("  extern __shared__ __align__({}) unsigned char shared[];\n", align);
  return fmt::format("  __shared__ __align__({}) unsigned char shared[{}];\n", align, bytes);
}

KernelText CudaPrinter::print() {
  collect_names();
  if (index_variables_.count("cluster.rank") != 0) prelude_.use("rank_in_cluster");
  if (!kernel_.launch.maps.empty()) prelude_.use("TensorMap");
  find_written_tensors();
  print_block(kernel_.body);

  const std::string head = launch_comment() + "\n" + signature() + thread_variables() + shared_declaration();
  const std::string prelude = prelude_.text();
  const int shift =
      static_cast<int>(std::count(prelude.begin(), prelude.end(), '\n') + std::count(head.begin(), head.end(), '\n'));
  for (LineOrigin& origin : origins_) origin.line += shift;
  return KernelText{c_name(kernel_.name), prelude + head + body_ + "}\n", origins_};
}

KernelText print_cuda(const Plan& plan, const Kernel& kernel) { return CudaPrinter(plan, kernel).print(); }

}  // namespace tilewright
