// The expansion of one kernel: what its files share. Users take expand() of passes.h.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "passes/finish/expand.h"
#include "passes/fragments.h"

namespace tilewright {

// Whether statements read or write a buffer (expand_mma.cpp).
bool touches(const Block& body, const std::string& buffer);

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
  const Block& bind_cluster(const Loop& grid, const Stmt& stmt);
  Block with_cursors(Block body) const;
  Block without_unused_registers(const Block& body) const;
  void copy(const Copy& copy, const Stmt& stmt, Block& out);
  std::vector<Expr> bind_grid(const Loop& grid, Span span);
  std::vector<std::string> arguments(const Kernel& kernel);
  [[noreturn]] static void refuse(const Stmt& stmt, const std::string& what);
  void needs_hopper(const Stmt& stmt, const std::string& what);
  void whole_block(const Block& statements, Block& out);
  // Statements of a block or a role, in the program of each thread.
  void block_level(const Block& statements, Block& out);
  static bool release_waits_for(const Mma& mma, const Block& statements, std::size_t next);
  // Expands the statement at `at`, and gives the position of the last one that it took with it.
  std::size_t statement(const Block& statements, std::size_t at, Block& out);
  void simple_statement(const Block& statements, std::size_t at, Block& out);
  std::size_t verb(const Block& statements, std::size_t at, Block& out);
  void branch(const If& branch, const Stmt& stmt, Block& out);
  void block_loop(const Loop& loop, const Stmt& stmt, Block& out);
  void serial_loop(const Loop& loop, const Stmt& stmt, Block& out);
  // A name for a thread's coordinate at the top of the kernel; equal ones share it.
  std::string head_let(const std::string& name, const Expr& value, Span span);

  // ---- `each` and `fill` (expand_each.cpp)
  Layout deal_of(const Loop& loop, bool& follows);
  void each(const Loop& loop, Span span, Block& out);
  Stmt written_out(const Stmt& stmt) const;
  static Block walk_steps(const std::vector<Axis>& steps, LoopKind kind, Block body, Span span);
  void fill_buffer(const Fill& fill, const Stmt& stmt, Block& out);

  // ---- `reduce` (expand_fold.cpp)
  void reduce(const Fold& fold, const Stmt& stmt, Block& out);

  // ---- Roles (expand_roles.cpp)
  BlockShape role_shape(const std::string& role) const;
  std::size_t roles(const Block& statements, std::size_t at, Block& out);
  Block role_body(const Role& role, const Block& body);
  Expr is_in_role(const Role& role, bool is_highest);
  bool is_for_one_thread(const Block& body) const;

  // ---- Pipes via tma (expand_pipe.cpp)
  struct PipeState {
    Pipe pipe;
    std::string full;           // names of its barrier objects, empty where it has none
    std::string empty;
    std::int64_t bytes = 0;     // of a slot
    std::int64_t arrivals = 0;  // that free a slot
    bool mma_reads = false;     // by wgmma only
    bool has_multicast = false;
    std::int64_t parts = 1;     // of a store, by a warpgroup each
    bool is_unrolled = false;   // its slots are constants of an unrolled loop
  };
  const PipeState* find_pipe(const std::string& name) const;
  void declare_pipe(const Pipe& pipe, const Stmt& stmt);
  void start_pipes(Span span, Block& out);
  void declare_cursors(const Block& body, Block& out);
  void advance(const PipeState& state, const std::string& side, Span span, Block& out);
  // Whether no slot that is acquired here can have been used before: there is nothing to wait for.
  bool has_fresh_slots(const PipeState& state) const;
  void wait_until_empty(const PipeState& state, Span span, Block& out);
  void wait_until_full(const PipeState& state, Span span, Block& out);
  std::size_t fill_by_engine(const PipeState& state, const Block& statements, std::size_t at, Block& out);
  Expr thread_of_warpgroup(Span span);
  void arrive_empty(const PipeState& state, int trips, const Expr& condition, Span span, Block& out);
  void release(const PipeState& state, Span span, Block& out);
  void release_rest(const PipeState& state, const Axis& axis, Span span, Block& out);
  // What a role (or a block without roles) still has to do for its pipes behind its last statement.
  void finish_pipes(const Block& body, Block& out);
  void drain(const PipeState& state, Span span, Block& out);

  // ---- Pipes via cp.async (expand_pipe_cp_async.cpp)
  std::size_t fill_by_cp_async(const PipeState& state, const Block& statements, std::size_t at, Block& out);
  void wait_for_cp_async(const PipeState& state, Span span, Block& out);

  // ---- The copy engine (expand_tma.cpp)
  struct EngineCopy {
    Expr place;                  // in shared memory
    std::vector<Expr> operands;  // map and coordinates
    Axis loop;                   // over boxes; no name where there is one
    std::size_t rank = 0;
  };
  std::string map_of(const std::string& tensor, const std::vector<std::int64_t>& box, int xor_bytes, const Stmt& stmt);
  // Number `part` of `parts` of a tile.
  enum class Share : std::uint8_t { PanelsOrRows, Rows };
  EngineCopy engine_copy(const Access& shared_side, const Access& tensor_side, const Expr& part, std::int64_t parts, Share share, const Stmt& stmt);
  static void emit(const EngineCopy& copy, Instr instr, Span span, Block& out);
  void load_by_engine(const Copy& copy, const Stmt& stmt, const Expr& full, Block& out);

  // ---- Results through shared memory (expand_epilogue.cpp)
  struct Definition {
    std::vector<std::string> axes;
    Expr value;
  };
  std::int64_t parts_of_store(const Pipe& pipe) const;
  bool is_unrolled(const Pipe& pipe) const;
  void sync_storers(const PipeState& state, Span span, Block& out);
  Expr is_storer(const PipeState& state, Span span);
  void store_verb(const PipeState& state, VerbKind kind, Span span, Block& out);
  void store_by_engine(const PipeState& state, const Copy& copy, const Stmt& stmt);
  std::vector<Expr> fragment_coordinates(const Buffer& source, const Expr& word, const Expr& in_row, bool as_address) const;
  struct Slice {
    Buffer buffer;     // the part alone, with its layout
    std::size_t axis;  // which is cut
    Expr offset;       // where the part starts
    Expr inner;        // the index in it
  };
  std::optional<Slice> slice_taken(const Buffer& source, const Copy& copy) const;
  bool leaves_by_stmatrix(const Buffer& source, const Buffer& target, const Copy& copy) const;
  // Whether the copy is one from registers into shared memory, which it then expands.
  std::optional<Buffer> slice_of(const Buffer& source, Copy& copy);
  bool copy_from_registers(const Copy& copy, const Stmt& stmt, Block& out);
  bool define_for_copy(const Block& statements, std::size_t at);

  // ---- 16-bit registers in pairs (expand_packed.cpp)
  void find_packed();
  bool packed_declaration(const Buffer& buffer, Span span, Block& out) const;
  bool packed_each(const Loop& loop, Span span, Block& out);
  Expr packed_word(const Expr& low, const Expr& high) const;

  // ---- Pipes via registers (expand_pipe_registers.cpp)
  void pipelined_through_registers(const Loop& loop, const Stmt& stmt, Block& out);
  void copy_statement(const Stmt& stmt, Block& out);

  // ---- Tensor cores (expand_mma.cpp, expand_mma_warps.cpp; expand_matrix_tiles.cpp)
  struct OperandAxes {  // of A or B
    Access access;
    std::size_t row = 0;    // which index is the row (of B: the column)
    std::size_t depth = 1;  // which is k
  };
  // The tiles of an instruction that the threads which run have.
  struct MatrixTiles {
    MatrixInstruction instruction;
    OperandAxes a;
    OperandAxes b;
    std::int64_t depth = 0;           // of k in the whole tile
    std::vector<Axis> row_steps;      // tiles one after the other
    std::vector<Axis> column_steps;
    Expr first_row;
    Expr first_column;
    Expr fragment;                    // the first register
  };
  OperandAxes operand_axes(const Access& access, const std::string& row, const Stmt& stmt) const;
  MatrixTiles matrix_tiles(const Mma& mma, const MatrixInstruction& instruction, const Stmt& stmt);
  std::string instruction_of(const Mma& mma, const Stmt& stmt) const;
  Expr adds_in_step(const std::string& accumulator, const std::string& k) const;
  void mma_by_wgmma(const Mma& mma, const MatrixTiles& tiles, const Stmt& stmt, Block& out);
  void mma_by_warps(const Mma& mma, const MatrixTiles& tiles, const Stmt& stmt, Block& out);
  Stmt load_matrices(const OperandAxes& axes, const Expr& row, const Expr& depth, const std::string& fragment, const Expr& first, const Stmt& stmt);
  // Whether the fill at `at` is left to the first mma behind it, and in which loop that stands.
  void absorb_fill(const Block& statements, std::size_t at, Block& out);
  void mma(const Mma& mma, const Stmt& stmt, Block& out);
  void wait_for_mma(int open, Span span, Block& out);
  Expr warpgroup();  // of the role
  Expr warpgroup_of_block();
  Expr warp();  // of the role

  const Kernel& kernel_;
  const Target& target_;
  ExpandContext context_;
  std::vector<HeadLet> lets_;
  BlockShape whole_;  // context_.block is that of the role
  std::int64_t cluster_ = 1;
  std::vector<TensorMap> maps_;
  std::vector<PipeState> pipes_;
  std::map<std::string, Definition> definitions_;  // of register buffers that are computed where they are used
  std::set<std::string> packed_;      // register buffers of 16-bit elements, two a word
  Block stores_;                      // of the copy engine, until their group is closed
  std::set<std::string> cursors_;     // `p.in`, `p.out` that are registers
  bool starts_pipes_ = false;         // barrier objects are still to be made
  std::int64_t unrolled_trips_ = 0;   // of the loop around the statement, where it is unrolled and in no other; else 0
  std::set<std::string> acquired_;    // pipes of which a slot was acquired
  bool in_loop_ = false;
  bool is_single_thread_ = false;     // the role's work is done by one thread
  bool uses_hopper_ = false;
  bool sets_registers_ = false;
  const Loop* late_loop_ = nullptr;   // whose releases may come late
  // Accumulators whose fill was absorbed: when the first k step of their mma adds to what is there. Empty Expr: never.
  std::map<std::string, Expr> adds_;
  Expr open_accumulator_;  // of the wgmmas that are still at work; empty for none
};

}  // namespace tilewright
