// The page of a model.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/page/assets.h"
#include "server/api/page/snippets.h"
#include "server/api/page/views.h"
#include "server/api/rest/json_text.h"

namespace floe::server {
namespace {

constexpr size_t kMostLayers = 30;
constexpr size_t kMostNameBytes = 1024;

// A bar whose length says the share; as a picture for people alone, whose number stands beside it.
void AddShare(double share, Html* row) {
  row->Add("<td class=\"number\" data-label=\"Share\"><meter min=\"0\" max=\"1\" value=\"");
  row->Text(absl::StrFormat("%.4f", share)).Add("\" aria-hidden=\"true\"></meter> ");
  row->Text(absl::StrFormat("%.1f %%", 100 * share)).Add("</td>");
}

PageSection Layers(const ServedModel* served, TimePoint now) {
  Html html;
  html.Add("<h2>Time per layer</h2>");
  const auto profile = served == nullptr ? nullptr : served->LastProfile();
  if (profile == nullptr)
    return {"layers", html.Add("<p>No run was timed yet. The next request is.</p>")};
  const ProfileReport& report = profile->report;
  html.Add("<p>").Text(absl::StrFormat(
      "A run of %d rows, %s ago: %.4g us, %.4g us of them between steps. While this page is open, "
      "about one run a second is timed.",
      profile->rows, TimeText(now - profile->when), report.run_us, report.between_us));
  html.Add(
      "</p><table><thead><tr><th scope=\"col\">Layer</th><th scope=\"col\">Op</th>"
      "<th scope=\"col\">Route</th><th scope=\"col\">Time us</th><th scope=\"col\">Share</th>"
      "<th scope=\"col\">GFLOP/s</th></tr></thead><tbody>");
  for (size_t i = 0; i < std::min(kMostLayers, report.steps.size()); ++i) {
    const ProfileRow& row = report.steps[i];
    html.Add("<tr><th scope=\"row\">");
    html.Text(row.within.empty() ? row.name : absl::StrCat(row.within, " > ", row.name));
    html.Add("</th>").Cell("Op", row.op).Cell("Route", row.route.empty() ? "-" : row.route);
    html.Number("Time us", absl::StrFormat("%.2f", row.us));
    AddShare(row.share, &html);
    const double rate = row.GflopsPerSecond();
    html.Number("GFLOP/s", rate > 0 ? absl::StrFormat("%.1f", rate) : "-").Add("</tr>");
  }
  html.Add("</tbody></table>");
  if (report.steps.size() > kMostLayers)
    html.Add("<p>").Text(absl::StrCat(report.steps.size() - kMostLayers, " more take less each"));
  return {"layers", html};
}

void AddBatchRows(const SignatureWork& work, Html* html) {
  html->Add("<tr><th scope=\"row\">").Text(work.name).Add("</th>");
  const auto counts = work.batch_rows.counts();
  const auto all = static_cast<double>(std::max<uint64_t>(work.batch_rows.count(), 1));
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const bool last = i == work.batch_rows.bounds().size();
    absl::StrAppendFormat(&text, "%s%s%g: %.3g %%", text.empty() ? "" : ", ",
                          last ? "over " : "up to ", work.batch_rows.bounds()[last ? i - 1 : i],
                          100 * static_cast<double>(counts[i]) / all);
  }
  html->Number("Runs", absl::StrCat(work.batch_rows.count()));
  html->Cell("Rows of a run", text).Add("</tr>");
}

// Of the newest version that is served.
PageSection Activity(const ModelStats& model) {
  Html html;
  html.Add("<h2>Batches and answers</h2>");
  for (const VersionStats& version : model.versions) {
    if (!version.scheduler.has_value()) continue;
    const SchedulerStats& stats = *version.scheduler;
    html.Add("<dl class=\"facts\">");
    html.Fact("Version", absl::StrCat(version.status.version));
    html.Fact("Workers", absl::StrCat(stats.progress.workers));
    html.Fact("Oldest that waits", stats.progress.queued == 0 ? "-" : TimeText(stats.oldest_wait));
    for (size_t code = 0; code < kStatusCodes; ++code) {
      if (stats.by_code[code] == 0) continue;
      html.Add("<div><dt>");
      html.Text(absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
      html.Add("</dt><dd>").Text(absl::StrCat(stats.by_code[code])).Add("</dd></div>");
    }
    html.Add("</dl>");
    if (stats.work.empty()) break;
    html.Add(
        "<table><thead><tr><th scope=\"col\">Signature</th><th scope=\"col\">Runs</th>"
        "<th scope=\"col\">Rows of a run</th></tr></thead><tbody>");
    for (const SignatureWork& work : stats.work) AddBatchRows(work, &html);
    html.Add("</tbody></table>");
    break;
  }
  return {"activity", html};
}

std::string JsonName(std::string_view name) {
  std::string json;
  AppendJsonString(Printable(name, kMostNameBytes), &json);
  return json;
}

std::string TensorsJson(const std::vector<SignatureTensor>& tensors) {
  std::string json = "[";
  for (const SignatureTensor& tensor : tensors) {
    const SymShape& shape = tensor.type.shape;
    absl::StrAppend(&json, json.size() == 1 ? "" : ",", "{\"key\":", JsonName(tensor.key),
                    R"(,"dtype":")", DTypeName(tensor.type.dtype), R"(","optional":)",
                    tensor.optional ? "true" : "false", ",\"shape\":[");
    for (int axis = 0; axis < shape.rank(); ++axis)
      absl::StrAppend(&json, axis == 0 ? "" : ",",
                      shape.dim(axis).concrete() ? shape.dim(axis).size() : -1);
    json += "]}";
  }
  return json + "]";
}

// For the form: [{"name": ..., "inputs": [{"key", "dtype", "optional", "shape"}]}, ...].
std::string SignaturesJson(const Model& model) {
  std::string json = "[";
  for (const auto& [name, signature] : model.signatures())
    absl::StrAppend(&json, json.size() == 1 ? "" : ",", "{\"name\":", JsonName(name),
                    ",\"inputs\":", TensorsJson(signature.def().inputs), "}");
  return json + "]";
}

void AddTensors(Markup kind, const std::vector<SignatureTensor>& tensors, Html* html) {
  for (const SignatureTensor& tensor : tensors) {
    html->Add("<tr><th scope=\"row\">").Text(tensor.key).Add("</th>");
    html->Add("<td data-label=\"Is\">").Add(kind);
    html->Text(tensor.optional ? ", optional" : "").Add("</td>");
    html->Cell("Type", DTypeName(tensor.type.dtype));
    html->Cell("Shape", tensor.type.shape.ToString()).Add("</tr>");
  }
}

void AddSignatures(const Model& model, Html* html) {
  html->Add("<section id=\"signatures\"><h2>Signatures</h2>");
  for (const auto& [name, signature] : model.signatures()) {
    html->Add("<h3>").Text(name).Add("</h3>");
    html->Add(
        "<table><thead><tr><th scope=\"col\">Name</th><th scope=\"col\">Is</th>"
        "<th scope=\"col\">Type</th><th scope=\"col\">Shape</th></tr></thead><tbody>");
    AddTensors("an input", signature.def().inputs, html);
    AddTensors("an output", signature.def().outputs, html);
    html->Add("</tbody></table>");
  }
  for (const auto& [name, why] : model.left_out())
    html->Add("<p>Not served: ")
        .Text(absl::StrCat(name, ": ", std::string(why.message())))
        .Add("</p>");
  html->Add("</section>");
}

}  // namespace

absl::StatusOr<PageSections> ModelSections(const PageState& state, const std::string& model) {
  const auto found = std::find_if(state.models.begin(), state.models.end(),
                                  [&](const ModelStats& one) { return one.name == model; });
  if (found == state.models.end())
    return absl::NotFoundError(absl::StrCat("there is no model ", Quoted(model)));
  const auto served = state.context.registry.Acquire(model, {});
  if (served.ok()) (*served)->ProfileNextRun();
  Html versions;
  versions.Add("<h2>Versions</h2>").Part(VersionsTable(state, {&*found}, /*links=*/false));
  for (const auto& [label, version] : found->labels)
    versions.Add("<p>Label ").Text(absl::StrCat(label, ": version ", version)).Add("</p>");
  return PageSections{{"versions", versions},
                      Activity(*found),
                      Layers(served.ok() ? served->get() : nullptr, state.now),
                      {"errors", RecentErrors(state, model, {})}};
}

Html ModelUse(const PageState& state, const std::string& model, const PageAddress& address) {
  Html html;
  const auto served = state.context.registry.Acquire(model, {});
  if (!served.ok()) {
    html.Add("<p>").Text(std::string(served.status().message()));
    return html.Add("</p>");
  }
  const Model& of = *(*served)->model();
  AddSignatures(of, &html);
  const std::string path = absl::StrCat("/v1/models/", UrlSegment(model), ":predict");
  html.Filled(PageFile("form.html"), {{"predict", path}, {"signatures", SignaturesJson(of)}});
  const Signature* const usual = of.Find("");
  const SignatureDef& def = usual == nullptr ? of.signatures().begin()->second.def() : usual->def();
  const Snippets snippets =
      SnippetsFor(def, absl::StrCat(address.scheme, "://", address.host, path));
  html.Add(
      "<section id=\"call\"><h2>Call it</h2><h3>curl</h3><pre tabindex=\"0\"><code id=\"curl\">");
  html.Text(snippets.curl)
      .Add("</code></pre><h3>Python</h3><pre tabindex=\"0\"><code id=\"python\">");
  html.Text(snippets.python).Add("</code></pre><h3>C++</h3><pre tabindex=\"0\"><code id=\"cpp\">");
  html.Text(snippets.cpp).Add("</code></pre></section>");
  return html;
}

}  // namespace floe::server
