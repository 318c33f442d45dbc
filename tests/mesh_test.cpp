// Uses: mesh
// Meshes of every legal kind, and each mistake refused at construction with the name that is wrong.
#include <gtest/gtest.h>

#include "espalier/mesh/device_mesh.h"
#include "espalier/mesh/sharding.h"
#include "expect_error.h"

namespace espalier {
namespace {

using Names = std::vector<std::string>;
using Sizes = std::vector<int64_t>;

TEST(Mesh, GridIsRowMajor) {
  DeviceMesh mesh({2, 4}, {"data", "model"});
  EXPECT_EQ(mesh.size(), 8);
  EXPECT_EQ(mesh.devices()[5], "cpu:5");
  EXPECT_EQ(mesh.coordinate(5, 0), 1);
  EXPECT_EQ(mesh.coordinate(5, 1), 1);
  EXPECT_EQ(mesh.stride(0), 4);
  EXPECT_EQ(mesh.stride(1), 1);
  EXPECT_EQ(to_string(mesh), "{'data': 2, 'model': 4}");
}

TEST(Mesh, CoordinatesAgreeWithCounting) {
  DeviceMesh mesh({3, 1, 2, 4}, {"a", "b", "c", "d"});
  int64_t device = 0;
  for (int64_t a = 0; a < 3; ++a)
    for (int64_t c = 0; c < 2; ++c)
      for (int64_t d = 0; d < 4; ++d, ++device) {
        EXPECT_EQ(mesh.coordinate(device, 0), a);
        EXPECT_EQ(mesh.coordinate(device, 1), 0);
        EXPECT_EQ(mesh.coordinate(device, 2), c);
        EXPECT_EQ(mesh.coordinate(device, 3), d);
      }
  EXPECT_EQ(device, mesh.size());
}

TEST(Mesh, OneStringIsOneAxis) {
  EXPECT_EQ(DeviceMesh(4, "model").axis_names(), Names{"model"});
  EXPECT_EQ(DeviceMesh(4, std::string("model")).axis_names(), Names{"model"});
  EXPECT_EQ(DeviceMesh({4}, {"model"}).axis_names(), Names{"model"});
  EXPECT_NE(error_text([] { DeviceMesh({4}, {"data", "model"}); }), "no error");
}

TEST(Mesh, OrderOfDevicesMatters) {
  DeviceMesh there({2}, {"model"}, {"cpu:0", "cpu:1"}), back({2}, {"model"}, {"cpu:1", "cpu:0"});
  EXPECT_NE(there, back);
  EXPECT_EQ(there, DeviceMesh(2, "model"));
  EXPECT_EQ(back.devices(), (Names{"cpu:1", "cpu:0"}));
}

TEST(Mesh, AxisOfOneMeansNothing) {
  DeviceMesh plain({2, 4}, {"data", "model"}), padded({1, 2, 1, 4}, {"x", "data", "y", "model"});
  for (int64_t device = 0; device < 8; ++device)
    EXPECT_EQ(shard_box(bind({"data", {"x", "model"}}, {5, 7}, padded, "t"), {5, 7}, padded, device),
              shard_box(bind({"data", "model"}, {5, 7}, plain, "t"), {5, 7}, plain, device));
  EXPECT_EQ(bind({"x", {"y", "model"}}, {5, 7}, padded, "t"), bind({std::nullopt, "model"}, {5, 7}, padded, "t"));
}

TEST(Mesh, ListDevices) {
  EXPECT_EQ(list_devices(3), (Names{"cpu:0", "cpu:1", "cpu:2"}));
  EXPECT_TRUE(list_devices(0).empty());
  EXPECT_EQ(error_text([] { list_devices(-1); }), "-1 devices are asked for; ask for 0 to 1048576");
}

TEST(Mesh, Parse) {
  EXPECT_EQ(DeviceMesh::parse("data=2,model=4"), DeviceMesh({2, 4}, {"data", "model"}));
  EXPECT_EQ(DeviceMesh::parse("model=2", {"cpu:3", "cpu:1"}).devices(), (Names{"cpu:3", "cpu:1"}));
  EXPECT_EQ(DeviceMesh::parse("data=1").size(), 1);
}

TEST(Mesh, RefusesWrongSizesAndNames) {
  auto text = [](Sizes shape, Names names) { return error_text([&] { DeviceMesh(shape, names); }); };
  EXPECT_EQ(text({2, 2}, {"a", "a"}), "axis 'a' is named twice: mesh (2, 2) with axes ('a', 'a'); give every axis a name of its own");
  EXPECT_EQ(text({0, 2}, {"a", "b"}), "axis 'a' has size 0: mesh (0, 2) with axes ('a', 'b'); give a size of at least 1");
  EXPECT_EQ(text({2, -1}, {"a", "b"}), "axis 'b' has size -1: mesh (2, -1) with axes ('a', 'b'); give a size of at least 1");
  EXPECT_EQ(text({}, {}), "the mesh has no axis; give at least one, as in data=2,model=4");
  EXPECT_EQ(text({2, 4}, {"data"}), "sizes and axis names are not equally many: mesh (2, 4) with axes ('data',); name the axis of size 4");
  EXPECT_EQ(text({2}, {"data", "model"}),
            "sizes and axis names are not equally many: mesh (2,) with axes ('data', 'model'); give a size for axis 'model'");
  EXPECT_EQ(text({2, 2}, {"a", ""}), "an axis has no name: mesh (2, 2) with axes ('a', ''); name every axis");
  EXPECT_EQ(text({2}, {"it's"}), "'it's' is no axis name: mesh (2,) with axes ('it's',); use letters, digits, '_', '-' or '.'");
  EXPECT_EQ(text({1 << 20, 1 << 20, 1 << 20, 1 << 20}, {"a", "b", "c", "d"}).substr(0, 38), "the mesh has more than 1048576 devices");
  EXPECT_EQ(text(Sizes(17, 1), Names(17, "a")), "the mesh has 17 axes; use at most 16");
  EXPECT_EQ(text(Sizes(9, 2), {"a", "b", "c", "d", "e", "f", "g", "h", "i"}).substr(0, 37), "the mesh has 9 axes larger than 1: me");
}

TEST(Mesh, RefusesWrongDevices) {
  auto text = [](Names devices) { return error_text([&] { DeviceMesh({2}, {"data"}, devices); }); };
  EXPECT_EQ(text({"cpu:0", "cpu:0"}),
            "device 'cpu:0' is listed twice: devices 0 and 1 of mesh (2,) with axes ('data',); list every device once");
  for (const char* name : {"gpu:0", "cpu", "cpu:", "cpu:x", "cpu:-1", "cpu:01", "cpu:1 ", "cpu:99999999999999999999", "cpu:1048576", ""})
    EXPECT_EQ(text({name, "cpu:1"}), std::string("unknown device '") + name + "'; devices are called cpu:0, cpu:1, ... up to cpu:1048575");
  EXPECT_EQ(
      text({"cpu:0"}),
      "the mesh has 2 places but the list of devices has length 1: mesh (2,) with axes ('data',); list more, or none for cpu:0 to cpu:1");
  EXPECT_EQ(
      text({"cpu:0", "cpu:1", "cpu:2"}),
      "the mesh has 2 places but the list of devices has length 3: mesh (2,) with axes ('data',); leave some out, or give a larger mesh");
}

TEST(Mesh, ParseRefuses) {
  auto text = [](const std::string& mesh) { return error_text([&] { DeviceMesh::parse(mesh); }); };
  const std::string todo = "; write name=size for each axis, as in data=2,model=4";
  EXPECT_EQ(text(""), "'' is no axis: mesh ''" + todo);
  EXPECT_EQ(text("data=2,model"), "'model' is no axis: mesh 'data=2,model'" + todo);
  EXPECT_EQ(text("data=2,"), "'' is no axis: mesh 'data=2,'" + todo);
  EXPECT_EQ(text("data=two"), "'two' is no size for axis 'data': mesh 'data=two'" + todo);
  EXPECT_EQ(text("data="), "'' is no size for axis 'data': mesh 'data='" + todo);
  EXPECT_EQ(text("data=99999999999999999999"),
            "'99999999999999999999' is no size for axis 'data': mesh 'data=99999999999999999999'" + todo);
  EXPECT_EQ(text("data=-2"), "axis 'data' has size -2: mesh (-2,) with axes ('data',); give a size of at least 1");
  EXPECT_EQ(text("=2"), "an axis has no name: mesh (2,) with axes ('',); name every axis");
}

TEST(Mesh, UnknownAxisNamesTheNearest) {
  DeviceMesh mesh({2, 4}, {"data", "model"});
  EXPECT_EQ(mesh.axis("model", "x"), 1);
  EXPECT_EQ(mesh.find_axis("modle"), std::nullopt);
  EXPECT_EQ(error_text([&] { mesh.axis("modle", "layout rule 'k'"); }),
            "the mesh {'data': 2, 'model': 4} has no axis 'modle': layout rule 'k'; did you mean 'model'?");
}

TEST(Mesh, ThousandsOfDevicesAndAxesOfOne) {
  DeviceMesh mesh({1, 256, 1, 4, 1}, {"a", "b", "c", "d", "e"});
  EXPECT_EQ(mesh.size(), 1024);
  EXPECT_EQ(mesh.coordinate(1023, 1), 255);
}

}  // namespace
}  // namespace espalier
