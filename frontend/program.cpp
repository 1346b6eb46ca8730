// parse_program: text to tokens, to items as written, to what they mean. Each stage reports all that it finds; the next
// one works on what is left.
#include "frontend/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/items.h"
#include "frontend/parser.h"

namespace tilewright {

Program parse_program(std::string text, std::string file_name) {
  Program program;
  program.files.push_back(SourceFile{std::move(file_name), std::move(text)});
  const std::string& source = program.files.front().text;
  Sink sink(source, 0);
  const std::vector<Lexeme> tokens = lex_program(source, sink);
  // What the lexer could not read at all leaves nothing to parse.
  if (tokens.size() == 1 && sink.has_errors()) throw UserError(sink.take());
  const AstProgram ast = ProgramParser(tokens, sink).parse_program();
  const bool has_broken_items = sink.has_errors();

  FnTable table(ast.fns, sink);
  for (const AstFn& fn : ast.fns) table.built(fn.name.text, Span{});
  // Behind a fault of grammar a fn may be missing, and what names it is not to blame.
  if (!has_broken_items) {
    program.generic_schedules = resolve_schedules(ast.schedules, table, sink);
    program.hands = resolve_hands(ast.hands, table, sink);
    program.benches = resolve_benches(ast.benches, table, sink);
    if (ast.fns.empty()) sink.error(Span{0, 1, 1, 1, 2}, "the program has no `fn`");
  }
  if (sink.has_errors()) throw UserError(sink.take());

  for (const AstFn& fn : ast.fns)
    if (!(table.is_scalar_fn(fn.name.text) && table.is_called(fn.name.text)))
      program.fns.push_back(*table.built(fn.name.text, Span{}));
  for (const Schedule& schedule : program.generic_schedules) program.schedules.push_back(with_parameters(schedule, {}));
  return program;
}

Schedule instantiate(const Program& program, const Schedule& schedule,
                     const std::map<std::string, std::int64_t>& values) {
  for (const Schedule& generic : program.generic_schedules)
    if (generic.fn == schedule.fn && generic.name == schedule.name) return with_parameters(generic, values);
  return schedule;
}

std::vector<ScheduleLine> parse_schedule_lines(const std::string& text, int file) {
  Sink sink(text, file);
  const std::vector<Lexeme> tokens = lex_program(text, sink);
  std::vector<ScheduleLine> lines = ProgramParser(tokens, sink).parse_all_lines();
  if (sink.has_errors()) throw UserError(sink.take());
  return lines;
}

}  // namespace tilewright
