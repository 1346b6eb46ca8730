// Cuts a `.cu` file into its top-level pieces and keeps those that belong to the device; see hand_source.h.
#include "runtime/hand_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/hand_lexer.h"

namespace tilewright {

namespace {

constexpr auto device_headers = std::to_array<std::string_view>({
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cuda_fp8.h",
    "mma.h",
    "cooperative_groups.h",
    "cooperative_groups/reduce.h",
    "cooperative_groups/scan.h",
    "cooperative_groups/memcpy_async.h",
    "cuda_pipeline.h",
    "cuda/barrier",
    "cuda/pipeline",
    "cuda/atomic",
});

// What the left-out standard headers would have defined, for the names that kernels use.
struct HeaderMacros {
  std::string_view header;
  std::string_view text;
};
constexpr auto header_macros = std::to_array<HeaderMacros>({
    {"float.h",
     "#define FLT_MAX 3.402823466e+38f\n#define FLT_MIN 1.175494351e-38f\n#define FLT_EPSILON "
     "1.192092896e-07f\n#define DBL_MAX 1.7976931348623158e+308\n"},
    {"limits.h", "#define INT_MAX 2147483647\n#define INT_MIN (-2147483647 - 1)\n#define UINT_MAX 4294967295u\n"},
    {"math.h",
     "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n#define M_PI "
     "3.14159265358979323846\n"},
    {"stdint.h",
     "typedef signed char int8_t;\ntypedef unsigned char uint8_t;\ntypedef short int16_t;\ntypedef unsigned short "
     "uint16_t;\n"
     "typedef int int32_t;\ntypedef unsigned int uint32_t;\ntypedef long long int64_t;\ntypedef unsigned long long "
     "uint64_t;\n"},
    {"assert.h", "#ifndef assert\n#define assert(condition) ((void)0)\n#endif\n"},
});

// "cmath" and "math.h" are one.
std::string plain_header(const std::string& header) {
  if (header.size() > 1 && header[0] == 'c' && header.find('.') == std::string::npos && header != "cuda/barrier")
    return header.substr(1) + ".h";
  return header;
}

bool is_device_header(const std::string& header) {
  return std::find(device_headers.begin(), device_headers.end(), header) != device_headers.end();
}

bool has_word(const HandPiece& piece, std::string_view word) {
  return std::any_of(piece.tokens.begin(), piece.tokens.end(),
                     [&](const HandToken& token) { return token.text == word; });
}

bool belongs_to_device(const HandPiece& piece) {
  return has_word(piece, "__global__") || has_word(piece, "__device__") || has_word(piece, "__constant__") ||
         has_word(piece, "__managed__");
}

// Names of the host's world: a type or constant made of them cannot be used in a kernel.
bool speaks_of_host(const HandPiece& piece) {
  return std::any_of(piece.tokens.begin(), piece.tokens.end(), [](const HandToken& token) {
    const std::string& text = token.text;
    return text == "std" || text == "FILE" ||
           (text.starts_with("cuda") && text.size() > 4 && text[4] >= 'A' && text[4] <= 'Z') ||
           text.starts_with("cublas");
  });
}

// Declarations that a kernel may need although nothing marks them: types, constants, constexpr functions.
bool may_stay(const HandPiece& piece) {
  if (speaks_of_host(piece)) return false;
  for (const std::string_view word :
       {"struct", "class", "union", "enum", "typedef", "constexpr", "static_assert", "concept"})
    if (has_word(piece, word)) return piece.kind != HandPiece::Kind::Function || word == "constexpr";
  if (has_word(piece, "using")) return !has_word(piece, "namespace");
  return piece.kind == HandPiece::Kind::Declaration && has_word(piece, "const") && !has_word(piece, "(");
}

bool is_bound_word(const std::string& word) {
  return word.starts_with("__launch_bounds__") || word == "__cluster_dims__" || word == "__maxnreg__" ||
         word == "__align__" || word == "__attribute__" || word == "__block_size__" || word == "alignas" ||
         word == "__declspec";
}

Dtype scalar_dtype(const std::vector<std::string>& words, bool& is_known) {
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  const bool is_unsigned_word = has("unsigned");
  is_known = true;
  if (has("float")) return Dtype::F32;
  if (has("double")) return Dtype::F64;
  if (has("__half") || has("half")) return Dtype::F16;
  if (has("__nv_bfloat16")) return Dtype::BF16;
  if (has("size_t") || has("uint64_t")) return Dtype::U64;
  if (has("int64_t") || has("ptrdiff_t")) return Dtype::I64;
  if (has("long")) return is_unsigned_word ? Dtype::U64 : Dtype::I64;
  if (has("uint8_t") || (has("char") && is_unsigned_word)) return Dtype::U8;
  if (has("int8_t") || has("char")) return Dtype::I8;
  if (has("uint16_t") || (has("short") && is_unsigned_word)) return Dtype::U16;
  if (has("int16_t") || has("short")) return Dtype::I16;
  if (has("bool")) return Dtype::Bool;
  if (has("uint32_t") || is_unsigned_word) return Dtype::U32;
  if (has("int") || has("int32_t")) return Dtype::I32;
  is_known = false;
  return Dtype::I32;
}

HandParameter parameter_of(const std::vector<std::string>& words) {
  HandParameter parameter;
  parameter.text = fmt::format("{}", fmt::join(words, " "));
  parameter.is_pointer =
      std::any_of(words.begin(), words.end(), [](const std::string& word) { return word == "*" || word == "["; });
  parameter.dtype = scalar_dtype(words, parameter.is_known_type);
  return parameter;
}

// The kernel that a piece declares: the name in front of the parameter list, and the list.
HandKernel kernel_of(const HandPiece& piece) {
  HandKernel kernel;
  kernel.line = piece.line;
  kernel.is_extern_c = piece.is_extern_c;
  const std::vector<HandToken>& tokens = piece.tokens;
  kernel.is_template = !tokens.empty() && tokens[0].text == "template";
  std::size_t open = 0;
  // Skip what follows `template`, then take the first `(` behind a name that is no attribute's.
  std::size_t start = 0;
  while (start < tokens.size() && tokens[start].text != "__global__") {
    if (start + 1 < tokens.size() && tokens[start].text == "extern" && tokens[start + 1].text == "\"C\"")
      kernel.is_extern_c = true;
    ++start;
  }
  for (std::size_t at = start + 1; at < tokens.size(); ++at) {
    if (tokens[at].text != "(" || !tokens[at - 1].is_word || is_bound_word(tokens[at - 1].text)) continue;
    open = at;
    break;
  }
  if (open == 0) return kernel;
  kernel.name = piece.scope + tokens[open - 1].text;
  int depth = 0;
  std::vector<std::string> words;
  for (std::size_t at = open + 1; at < tokens.size(); ++at) {
    const std::string& text = tokens[at].text;
    if (depth == 0 && (text == "," || text == ")")) {
      if (!words.empty() && !(words.size() == 1 && words[0] == "void"))
        kernel.parameters.push_back(parameter_of(words));
      words.clear();
      if (text == ")") break;
      continue;
    }
    if (text == "(" || text == "[" || text == "<") ++depth;
    if (text == ")" || text == "]" || text == ">") --depth;
    words.push_back(text);
  }
  return kernel;
}

std::string name_of_piece(const HandPiece& piece) {
  for (std::size_t at = 1; at < piece.tokens.size(); ++at)
    if (piece.tokens[at].text == "(" && piece.tokens[at - 1].is_word) return piece.tokens[at - 1].text;
  for (std::size_t at = 1; at < piece.tokens.size(); ++at)
    if ((piece.tokens[at].text == "=" || piece.tokens[at].text == ";" || piece.tokens[at].text == "[") &&
        piece.tokens[at - 1].is_word)
      return piece.tokens[at - 1].text;
  return piece.tokens.empty() ? "" : piece.tokens[0].text;
}

std::string blank_lines(const std::string& text) {
  return std::string(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), '\n');
}

// `#include <x>`: the header's name, empty for other directives.
std::string included_header(const std::string& directive, bool& is_local) {
  const std::size_t at = directive.find("include");
  if (at == std::string::npos || directive.find_first_not_of("# \t") != at) return "";
  const std::size_t open = directive.find_first_of("<\"", at);
  if (open == std::string::npos) return "";
  is_local = directive[open] == '"';
  const std::size_t close = directive.find_first_of(">\"", open + 1);
  return close == std::string::npos ? "" : directive.substr(open + 1, close - open - 1);
}

// Steps in comments: `// launch k<16><<<…>>>(…)`.
void read_comment(const std::string& comment, int line, std::vector<HandComment>& comments) {
  if (!comment.starts_with("//")) return;
  const std::size_t begin = comment.find_first_not_of("/ \t");
  if (begin == std::string::npos) return;
  std::string step = comment.substr(begin);
  while (!step.empty() && (step.back() == '\n' || step.back() == ' ' || step.back() == '\r')) step.pop_back();
  const auto starts = [&](std::string_view word) {
    return step.starts_with(word) && step.size() > word.size() && step[word.size()] == ' ';
  };
  HandComment result{step, "", "", line};
  if (starts("launch")) {
    const std::size_t shape = step.find("<<<");
    if (shape == std::string::npos) return;  // prose that begins with the word
    const std::size_t name = step.find_first_not_of(' ', 6);
    result.instance = step.substr(name, shape - name);
    while (!result.instance.empty() && result.instance.back() == ' ') result.instance.pop_back();
    result.kernel = result.instance.substr(0, result.instance.find('<'));
    result.step = "launch " + result.kernel + step.substr(shape);
    comments.push_back(result);
  } else if ((starts("let") && step.find('=') != std::string::npos && step.find('[') != std::string::npos) ||
             (starts("constant") && step.find('=') != std::string::npos)) {
    comments.push_back(result);
  } else if (starts("zero") && step.find(' ', 5) == std::string::npos) {
    comments.push_back(result);
  }
}

}  // namespace

HandSource read_hand_source(const std::string& text, const std::string& file_name) {
  HandSource source;
  std::string macros;
  std::string body;
  for (const HandPiece& piece : cut_hand_source(text)) {
    switch (piece.kind) {
      case HandPiece::Kind::Comment:
        read_comment(piece.text, piece.line, source.comments);
        body += piece.text;
        break;
      case HandPiece::Kind::Space:
      case HandPiece::Kind::Scope:
        body += piece.text;
        break;
      case HandPiece::Kind::Directive: {
        bool is_local = false;
        const std::string header = included_header(piece.text, is_local);
        if (header.empty() || is_local || is_device_header(header)) {
          body += piece.text;
          break;
        }
        for (const HeaderMacros& row : header_macros)
          if (plain_header(header) == row.header && macros.find(row.text) == std::string::npos) macros += row.text;
        source.left_out.push_back(fmt::format("#include <{}>, line {}", header, piece.line));
        body += blank_lines(piece.text);
        break;
      }
      case HandPiece::Kind::Function:
      case HandPiece::Kind::Declaration:
        if (has_word(piece, "__global__")) {
          const HandKernel kernel = kernel_of(piece);
          const bool is_known = std::any_of(source.kernels.begin(), source.kernels.end(),
                                            [&](const HandKernel& each) { return each.name == kernel.name; });
          if (!kernel.name.empty() && !is_known) source.kernels.push_back(kernel);
        }
        if (belongs_to_device(piece) || may_stay(piece)) {
          body += piece.text;
        } else {
          if (!piece.tokens.empty() && piece.tokens[0].text != ";") {
            source.left_out.push_back(fmt::format("{} `{}`, line {}",
                                                  piece.kind == HandPiece::Kind::Function ? "function" : "declaration",
                                                  name_of_piece(piece), piece.line));
          }
          body += blank_lines(piece.text);
        }
        break;
    }
  }
  source.text = macros + fmt::format("#line 1 \"{}\"\n", file_name) + body;
  return source;
}

}  // namespace tilewright
