// The page in a real browser without a screen: rungs by the arrow keys, lines that light their lines in every pane, the
// difference, the hand kernel beside it; and pictures, wide and as narrow as a phone, in the folder of the test program.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/files.h"
#include "runtime/process.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"
#include "tools/measure.h"
#include "tools/page.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

std::string find_browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome", "chrome"}) {
    const std::string path = std::getenv("PATH") ? std::getenv("PATH") : "";
    for (std::size_t start = 0; start <= path.size();) {
      const std::size_t end = std::min(path.find(':', start), path.size());
      const fs::path candidate = fs::path(path.substr(start, end - start)) / name;
      if (fs::exists(candidate)) return candidate.string();
      start = end + 1;
    }
  }
  return "";
}

// What a person does, and what the page then shows.
constexpr const char* driver = R"js(<script>
const seen = {};
const press = (key, target) => (target || document.body).dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
const chosen = () => document.querySelector("#rows [aria-selected=true] .name").textContent;
const lit = (form) => [...document.querySelectorAll(`#pane-${form} .code[data-main] .l.lit`)].map((line) => line.textContent.trim());
const point = (form, text) => {
  const line = [...document.querySelectorAll(`#pane-${form} .code[data-main] .l`)].find((each) => each.textContent.includes(text));
  line.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
  const all = {};
  for (const each of ["program", "ir", "thread", "cuda", "ptx", "sass"]) all[each] = lit(each);
  return all;
};
const walked = [chosen()];
for (let n = 0; n < 3; ++n) press("ArrowRight"), walked.push(chosen());
seen.walked = walked;
seen.multiply = point("sass", "FFMA");
seen.copy = point("ir", "copy As[");
seen.back = (press("ArrowLeft"), chosen());
press("ArrowDown");
const pane = document.querySelector("#pane-ir .code");
press("ArrowDown", pane), press("ArrowDown", pane), press("ArrowDown", pane);
seen.keys = document.querySelector("#pane-ir .l.here").dataset.n;
seen.row_kept = chosen();
seen.status = document.getElementById("said").textContent;
const change = (id, set) => { set(document.getElementById(id)); document.getElementById(id).dispatchEvent(new Event("change")); };
change("diff", (box) => (box.checked = true));
seen.plus = [...document.querySelectorAll("#pane-ir .l.plus")].map((line) => line.textContent.trim());
seen.minus = document.querySelectorAll("#pane-ir .l.minus").length;
change("diff", (box) => (box.checked = false));
change("beside", (list) => (list.value = [...list.options].find((each) => each.textContent === "ch5 tiled (hand)").value));
const pairs = (form, part) => [...document.querySelectorAll(`#pane-${form} .pair`)].map((pair) => [pair.children[0].textContent, pair.children[1].textContent]).filter(([ours, theirs]) => ours.includes(part) || theirs.includes(part));
seen.multiplies = pairs("sass", "FFMA");
seen.named = pairs("cuda", "matmul_tiled").length;
seen.ours = document.querySelectorAll("#pane-sass .pair .l").length;
change("beside", (list) => (list.value = ""));
const lineAbove = (node) => (node.classList.contains("l") ? node.textContent : lineAbove(node.previousElementSibling));
const notes = (form) => [...document.querySelectorAll(`#pane-${form} .note`)].map((note) => [lineAbove(note), note.textContent]);
seen.program_notes = notes("program");
seen.ir_notes = notes("ir");
choose(rows.findIndex((row) => row.name.startsWith("bind")));
press("ArrowRight");
seen.wide = document.documentElement.scrollWidth;
seen.window = window.innerWidth;
const result = document.createElement("pre");
result.id = "seen";
result.textContent = JSON.stringify(seen);
document.body.append(result);
</script>)js";

std::vector<std::string> browser_words(const std::string& browser, const fs::path& profile) {
  return {browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--user-data-dir=" + profile.string()};
}

std::string with_script(std::string page, const std::string& script) {
  page.insert(page.rfind("</body>"), script);
  return page;
}

bool is_png(const fs::path& file) { return fs::exists(file) && read_whole_file(file.string()).starts_with("\x89PNG"); }

// The page in a frame of a phone's width: the browser makes no window so narrow.
std::string framed(const fs::path& page, int width, int height) {
  return fmt::format("<!doctype html><body style=\"margin:0\"><iframe src=\"file://{}\" style=\"border:0;width:{}px;height:{}px\"></iframe></body>", page.string(), width, height);
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("page: walked and pointed at in a browser") {
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::Nvdisasm)) TILEWRIGHT_SKIP("NVRTC or nvdisasm was not found");
    const std::string browser = find_browser();
    if (browser.empty()) TILEWRIGHT_SKIP("no chromium here: scripts/setup --browser");
    Options options;
    options.file = (source_root() / "examples/ch05_tiled_matmul/matmul.tw").string();
    options.device = "sim";
    options.schedule = "ch5 tiled";
    options.sets = {"M=128,N=128,K=128"};
    const std::string page = page_of(ladder_of(options, true), nullptr);
    CHECK(page.size() < 1'000'000);
    const fs::path scratch = fs::temp_directory_path() / fmt::format("tilewright-page-{}", getpid());
    fs::create_directories(scratch);
    std::ofstream(scratch / "page.html") << page;
    std::ofstream(scratch / "driven.html") << with_script(page, driver);

    std::vector<std::string> words = browser_words(browser, scratch / "profile");
    words.insert(words.end(), {"--dump-dom", "--virtual-time-budget=20000", "--window-size=1280,900", "file://" + (scratch / "driven.html").string()});
    const std::string dom = run_process(words).output;
    const std::size_t at = dom.find("<pre id=\"seen\">");
    REQUIRE_MESSAGE(at != std::string::npos, dom.substr(dom.size() > 2000 ? dom.size() - 2000 : 0));
    std::string text = dom.substr(at + 15, dom.find("</pre>", at) - at - 15);
    for (const auto& [from, to] : {std::pair{"&lt;", "<"}, std::pair{"&gt;", ">"}, std::pair{"&amp;", "&"}})
      for (std::size_t place = 0; (place = text.find(from, place)) != std::string::npos; ++place) text.replace(place, std::string(from).size(), to);
    const nlohmann::json seen = nlohmann::json::parse(text);

    CHECK(seen["walked"] == nlohmann::json({"(lowered)", "tile block i 16, j 16, k 16", "bind i thread.y, j thread.x", "stage A, B in shared at k.block"}));
    const auto only = [](const nlohmann::json& lines, const char* part) {
      REQUIRE(!lines.empty());
      for (const nlohmann::json& line : lines) CHECK_MESSAGE(line.get<std::string>().find(part) != std::string::npos, line.get<std::string>());
    };
    const auto some = [](const nlohmann::json& lines, const char* part) {
      bool found = false;
      for (const nlohmann::json& line : lines) found |= line.get<std::string>().find(part) != std::string::npos;
      return found;
    };
    // A multiplication of the SASS, up to the one line of the program that it comes from.
    only(seen["multiply"]["program"], "C[i, j] = sum[k] A[i, k] * B[k, j]");
    only(seen["multiply"]["ir"], "acc[i, j] = fma(As[i, k], Bs[k, j], acc[i, j])");
    only(seen["multiply"]["thread"], "acc = fma(As[");
    only(seen["multiply"]["cuda"], "acc = fmaf(As[");
    CHECK(some(seen["multiply"]["sass"], "FFMA"));
    CHECK(some(seen["multiply"]["ptx"], "fma.rn.f32"));
    // A copy of the IR, down to the loads and stores that carry it.
    only(seen["copy"]["ir"], "copy As[");
    only(seen["copy"]["cuda"], "As[t] = ");
    CHECK(some(seen["copy"]["sass"], "LDG"));
    CHECK(some(seen["copy"]["sass"], "STS"));
    CHECK_FALSE(some(seen["copy"]["sass"], "FFMA"));
    CHECK(some(seen["copy"]["ptx"], "ld.global"));
    CHECK_FALSE(some(seen["copy"]["ptx"], "fma.rn"));
    CHECK(seen["back"] == "bind i thread.y, j thread.x");
    CHECK(seen["keys"] == "3");
    CHECK(seen["row_kept"] == "stage A, B in shared at k.block");
    CHECK(seen["status"].get<std::string>().starts_with("IR line 3"));
    CHECK(some(seen["plus"], "shared As: f32"));
    CHECK(seen["minus"].get<int>() > 0);
    // The hand kernel's machine code stands beside ours, like beside like.
    int both = 0, one = 0;
    for (const nlohmann::json& pair : seen["multiplies"]) {
      const bool ours = pair[0].get<std::string>().find("FFMA") != std::string::npos, theirs = pair[1].get<std::string>().find("FFMA") != std::string::npos;
      both += ours && theirs, one += ours != theirs;
    }
    CHECK(both >= 14);
    CHECK(2 * both + one == 32);  // 16 products each
    CHECK(seen["named"].get<int>() > 0);
    CHECK(seen["ours"].get<int>() > 50);
    // What the simulator saw stands below the line that asks for it.
    const auto noted = [&](const char* where, const char* line, const char* part) {
      bool found = false;
      for (const nlohmann::json& note : seen[where]) found |= note[0].get<std::string>().find(line) != std::string::npos && note[1].get<std::string>().find(part) != std::string::npos;
      return found;
    };
    CHECK(noted("program_notes", "C[i, j] = sum[k] A[i, k] * B[k, j]", "load A[i, k], global: 4 sectors a request, 4 needed"));
    CHECK(noted("ir_notes", "copy As[", "load A[i, k], global: 4 sectors"));
    CHECK(noted("ir_notes", "copy Bs[", "load B[k, j], global: 4 sectors"));
    CHECK_FALSE(noted("ir_notes", "copy As[", "load B[k, j]"));
    CHECK(seen["wide"].get<int>() <= seen["window"].get<int>());  // nothing hangs out of the page

    const std::string steps = "<script>for (let n = 0; n < 3; ++n) choose(state.row + 1); light(\"cuda\", Number([...document.querySelectorAll(\"#pane-cuda .l\")].find((l) => l.textContent.includes(\"fmaf\")).dataset.n), \"keys\");</script>";
    std::ofstream(scratch / "shown.html") << with_script(page, steps);
    std::ofstream(scratch / "framed.html") << framed(scratch / "shown.html", 400, 2400);
    for (const auto& [name, window, file] : {std::tuple{"report-1280.png", "1280,1500", "shown.html"}, std::tuple{"report-400.png", "500,2400", "framed.html"}}) {
      const fs::path picture = program_folder() / name;
      std::vector<std::string> shot = browser_words(browser, scratch / "profile");
      shot.insert(shot.end(), {"--screenshot=" + picture.string(), fmt::format("--window-size={}", window), "--virtual-time-budget=10000", "--allow-file-access-from-files", "file://" + (scratch / file).string()});
      run_process(shot);
      CHECK(is_png(picture));
    }
    fs::remove_all(scratch);
  }
}

}  // namespace tilewright
