// floe's numbers under the names of other servers, for dashboards that were made for those.
#pragma once

#include "server/metrics/scrape.h"

namespace floe::server {

// ":tensorflow:serving:...", by model, with TensorFlow Serving's buckets of microseconds.
void WriteTfServingMetrics(const Scrape& scrape, Exposition* text);
// "nv_inference_...", by model and version.
void WriteTritonMetrics(const Scrape& scrape, Exposition* text);
// "request_predict_seconds", by model, as the model servers of KServe's Python package.
void WriteKserveMetrics(const Scrape& scrape, Exposition* text);

}  // namespace floe::server
