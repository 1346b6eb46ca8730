// The expansion of one kernel: what its files share. Users take expand() of passes.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/finish/expand.h"

namespace tilewright {

class Expander {
 public:
  Expander(const Plan& plan, const Kernel& kernel, BlockShape block, const Target& target);
  Kernel run();

 private:
  struct HeadLet {
    std::string name;
    Expr value;
    Span span;
  };

  // ---- The kernel and its block (expand.cpp)
  Block name_linear_thread(Block body);
  int blocks_that_fit() const;
  std::vector<Expr> bind_grid(const Loop& grid, Span span);
  std::vector<std::string> arguments(const Kernel& kernel);
  [[noreturn]] static void refuse(const Stmt& stmt, const std::string& what);
  void needs_hopper(const Stmt& stmt, const std::string& what) const;
  // Statements of the whole block, in the program of each thread.
  void block_level(const Block& statements, Block& out);
  void statement(const Block& statements, std::size_t at, Block& out);
  void block_loop(const Loop& loop, const Stmt& stmt, Block& out);
  // A name for a thread's coordinate at the top of the kernel; equal ones share it.
  std::string head_let(const std::string& name, const Expr& value, Span span);

  // ---- `each` and `fill` (expand_each.cpp)
  Layout deal_of(const Loop& loop, bool& follows);
  void each(const Loop& loop, Span span, Block& out);
  Stmt written_out(const Stmt& stmt) const;
  static Block walk_steps(const std::vector<Axis>& steps, LoopKind kind, Block body, Span span);
  void fill_buffer(const Fill& fill, const Stmt& stmt, Block& out);

  // ---- Pipes via registers (expand_pipe_registers.cpp)
  void pipelined_through_registers(const Loop& loop, const Stmt& stmt, Block& out);
  void copy_statement(const Stmt& stmt, Block& out);

  // ---- Tensor cores (expand_mma.cpp)
  // Whether the fill at `at` is left to the first mma behind it, and in which loop that stands.
  void absorb_fill(const Block& statements, std::size_t at, Block& out);
  void mma(const Mma& mma, const Stmt& stmt, Block& out);
  void wait_for_mma(int open, Span span, Block& out);
  Expr warpgroup(Span span);  // of the role

  const Kernel& kernel_;
  const Target& target_;
  ExpandContext context_;
  std::vector<HeadLet> lets_;
  std::vector<Pipe> pipes_;
  // Accumulators whose fill was absorbed: when the first k step of their mma adds to what is there. Empty Expr: never.
  std::map<std::string, Expr> adds_;
  Expr open_accumulator_;  // of the wgmmas that are still at work; empty for none
};

}  // namespace tilewright
