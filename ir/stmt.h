// Statements of both stages of a kernel: immutable, shared, compared by value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "ir/layout.h"

namespace tilewright {

struct StmtNode;

class Stmt {
 public:
  Stmt() = default;
  explicit Stmt(std::shared_ptr<const StmtNode> node) : node_(std::move(node)) {}
  explicit operator bool() const { return node_ != nullptr; }
  const StmtNode& operator*() const { return *node_; }
  const StmtNode* operator->() const { return node_.get(); }
  const void* identity() const { return node_.get(); }
  friend bool operator==(const Stmt& a, const Stmt& b);

 private:
  std::shared_ptr<const StmtNode> node_;
};

using Block = std::vector<Stmt>;

// Parallel: not yet bound. Grid: over blocks, last axis is block.x. Cluster: CTAs of a cluster. Ordered: by ticket.
// Each: data-parallel over tile coordinates, dealt to threads. Serial: in order. Unroll: in order, unrolled, constant
// bounds. Vector: in order, every contiguous access one instruction; constant bounds, innermost.
enum class LoopKind : std::uint8_t { Parallel, Grid, Cluster, Ordered, Each, Serial, Unroll, Vector };

// A nest over `axes`, outermost first (bounds may use earlier axes). `deal` (each only): which thread does what;
// none: it follows the register buffer in it, or is not decided yet.
struct Loop {
  LoopKind kind;
  std::vector<Axis> axes;
  std::optional<Layout> deal;
  Block body;
  friend bool operator==(const Loop&, const Loop&) = default;
};

struct If {
  Expr condition;
  Block then_body;
  Block else_body;
  friend bool operator==(const If&, const If&) = default;
};

enum class Space : std::uint8_t { Register, Shared };

// A shared axis may be unnamed at thread stage.
struct BufferAxis {
  std::string name;
  std::int64_t extent = 1;
  friend bool operator==(const BufferAxis&, const BufferAxis&) = default;
};

// Declares a buffer for the rest of the enclosing body; its content is undefined until written. Register without axes:
// a scalar. At block level it belongs to the block (and register buffers need a layout before expansion); inside `each`
// it is the thread's own. `offset`: byte offset in the block's shared memory, set by place_shared (thread stage).
struct Buffer {
  Space space;
  std::string name;
  Dtype dtype;
  std::vector<BufferAxis> axes;
  std::optional<Layout> layout;
  std::optional<std::int64_t> offset;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// A value with a name, for the rest of the enclosing body. `lo`, `hi` (may be empty) promise its range.
struct Let {
  std::string name;
  Expr value;
  Expr lo;
  Expr hi;
  friend bool operator==(const Let&, const Let&) = default;
};

// `target = value where …`: stores when every condition holds; the value is evaluated only then. With `atomic`, combines
// into the target indivisibly. The value's dtype is the target's.
struct Store {
  Access target;
  Expr value;
  std::vector<Expr> where;
  std::optional<CombineOp> atomic;
  friend bool operator==(const Store&, const Store&) = default;
};

// `copy D[…] <- S[…; v] multicast AXIS where … on DEAL`. Bare new names among D's indices (S's, where D has none)
// are loops over that axis of the buffer they index. Converts nothing: both have one dtype.
struct Copy {
  Access target;
  Access source;
  std::string multicast;  // empty for none
  std::vector<Expr> where;
  std::optional<Layout> deal;
  friend bool operator==(const Copy&, const Copy&) = default;
};

struct Fill {
  std::string buffer;
  Expr value;
  friend bool operator==(const Fill&, const Fill&) = default;
};

// D[i, j] += A[i, k] * B[k, j] over all named axes, in the dtype of D, products exact in it.
struct Mma {
  Access target;
  Access a;
  Access b;
  std::string instruction;
  friend bool operator==(const Mma&, const Mma&) = default;
};

// `reduce D[…] <- op S[…]` folds the axes of S that D has not, in order; `scan D <- op S[x] total T` inclusive prefix.
struct Fold {
  bool is_scan = false;
  Access target;
  CombineOp op;
  Access source;
  std::string total;  // scan only; empty for none
  friend bool operator==(const Fold&, const Fold&) = default;
};

enum class PipeScope : std::uint8_t { Cta, Cluster };  // written `block`, `cluster`

struct Pipe {
  std::string name;
  std::vector<std::string> buffers;
  int slots = 1;
  std::string mechanism;  // "registers", "cp.async", "tma", "tma.store"
  int in_flight = 0;
  PipeScope scope = PipeScope::Cta;
  friend bool operator==(const Pipe&, const Pipe&) = default;
};

enum class VerbKind : std::uint8_t { Acquire, Commit, Wait, Release };

struct Verb {
  VerbKind kind;
  std::string pipe;
  friend bool operator==(const Verb&, const Verb&) = default;
};

struct Role {
  std::string name;
  int first_warp = 0;
  int last_warp = 0;  // exclusive
  int registers = 0;  // 0: not set
  friend bool operator==(const Role&, const Role&) = default;
};

// `@role statement`
struct Labelled {
  std::string role;
  Stmt statement;
  friend bool operator==(const Labelled&, const Labelled&) = default;
};

struct Chain {
  std::string name;
  Dtype dtype;
  CombineOp op;
  Expr start;
  friend bool operator==(const Chain&, const Chain&) = default;
};
struct Publish {
  std::string chain;
  Expr value;
  friend bool operator==(const Publish&, const Publish&) = default;
};
struct Lookback {
  Access target;
  std::string chain;
  friend bool operator==(const Lookback&, const Lookback&) = default;
};

// Thread stage: a row of the table in ir/instructions.h without a result, `barrier.block()`, `load.v4(r[0], A[e])`.
// An operand that is a place in memory is written as a Load of its first element.
struct Instr {
  std::string op;
  std::vector<Expr> operands;
  friend bool operator==(const Instr&, const Instr&) = default;
};

using StmtVariant = std::variant<Loop, If, Buffer, Let, Store, Copy, Fill, Mma, Fold, Pipe, Verb, Role, Labelled, Chain, Publish,
                                 Lookback, Instr>;

// `span` is the line of the program (file 0) that the statement comes from.
struct StmtNode {
  StmtVariant value;
  Span span;
  friend bool operator==(const StmtNode&, const StmtNode&) = default;
};

Stmt make_stmt(StmtVariant value, Span span = {});

template <class T>
const T* as(const Stmt& stmt) {
  return stmt ? std::get_if<T>(&stmt->value) : nullptr;
}

template <class... F>
decltype(auto) match(const Stmt& stmt, F&&... functions) {
  return match_variant(stmt->value, std::forward<F>(functions)...);
}

// ---- Recursion lives here.
// A copy with every expression directly in the statement (not in nested statements) replaced by f.
Stmt map_expressions(const Stmt& stmt, const std::function<Expr(const Expr&)>& f);
// A copy with every directly nested body replaced by f(body).
Stmt map_bodies(const Stmt& stmt, const std::function<Block(const Block&)>& f);
// Replaces in all expressions of a body, at any depth, bottom-up.
Block rewrite_expressions(const Block& body, const std::function<Expr(const Expr&)>& f);
// Replaces each statement, innermost first, by the statements f gives for it.
Block rewrite_statements(const Block& body, const std::function<Block(const Stmt&)>& f);
// Visits every statement, parents first; f returns false to leave out what is nested.
void walk(const Block& body, const std::function<bool(const Stmt&)>& f);
// Visits every expression (top ones; use walk(Expr) below them) of every statement at any depth.
void walk_expressions(const Block& body, const std::function<void(const Expr&)>& f);
// Replaces variables by name in a body (no capture analysis: loop names are unique on a path).
Block substitute(const Block& body, const std::vector<std::pair<std::string, Expr>>& replacements);
// Renames a buffer everywhere: declaration, accesses, tile operations, pipes.
Block rename_buffer(const Block& body, const std::string& from, const std::string& to);

}  // namespace tilewright
