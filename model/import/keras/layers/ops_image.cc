// Operations on images.
#include <string>

#include "model/import/keras/images.h"
#include "model/import/keras/operation.h"
#include "model/import/keras/windows.h"

namespace floe::keras {
namespace {

KValue Resize(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::vector<int64_t> size = IntOptions(c, {"size"});
  const std::string way = TextOption(c, {"interpolation", "method"}, "bilinear");
  const bool antialias = BoolOption(c, {"antialias"}, false);
  const bool last = TextOption(c, {"data_format"}, "channels_last") == "channels_last";
  if (BoolOption(c, {"preserve_aspect_ratio"}, false))
    return c.Refuse("preserve_aspect_ratio=True");
  if (size.size() != 2) c.Fail("a height and a width are needed");
  const bool crop = BoolOption(c, {"crop_to_aspect_ratio"}, false),
             pad = BoolOption(c, {"pad_to_aspect_ratio"}, false);
  const std::string fill = TextOption(c, {"fill_mode"}, "constant");
  const double value = NumberOption(c, {"fill_value"}, 0);
  ValueRef x = FirstTensor(c);
  const bool alone = b.rank(x) == 3;
  if (alone) x = b.ExpandDims(x, 0);
  x = ChannelsToLast(b, x, last);
  if (!b.ok()) return {};
  if (crop) x = CropToAspect(c, x, size[0], size[1]);
  if (pad && fill != "constant") return c.Refuse("fill_mode " + fill);
  if (pad) x = PadToAspect(c, x, size[0], size[1], value);
  ValueRef y = ResizeImages(c, x, size[0], size[1], way, antialias);
  y = ChannelsFromLast(b, y, last);
  return alone ? b.Squeeze(y, {0}) : y;
}

const OperationRegistrar kImages[] = {{"Resize", {"image.resize"}, Resize}};

}  // namespace
}  // namespace floe::keras
