#include "report/report_socket.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

namespace trapline {
namespace {

std::string name_of(const std::string& address) { return address.substr(0, address.find('.')); }

std::string names(const Handed& handed) {
  std::string out;
  for (const HandedFile& file : handed.files) out += file.name + "=" + file.text + ";";
  return out;
}

TEST(ReportSocket, TakesWhatWasHandedOverOnce) {
  const ReportSocket socket = ReportSocket::open();
  ASSERT_FALSE(socket.address().empty());
  EXPECT_TRUE(socket.take().files.empty());
  const std::string big(150'000, 'x');
  EXPECT_TRUE(hand_over(socket.address(), "finding-h-1-0.json", "{}\n\n"));
  EXPECT_TRUE(hand_over(socket.address(), "lost-h-2.json", ""));
  EXPECT_TRUE(hand_over(socket.address(), "finding-h-1-1.json", big));
  const Handed handed = socket.take();
  EXPECT_EQ(names(handed), "finding-h-1-0.json={}\n\n;lost-h-2.json=;finding-h-1-1.json=" + big + ";");
  EXPECT_NEAR(static_cast<double>(handed.files[0].written) / 1e9, static_cast<double>(::time(nullptr)), 60);
  EXPECT_FALSE(handed.is_full);
  EXPECT_TRUE(socket.take().files.empty());
}

TEST(ReportSocket, IsReachedByAnotherUserInAnotherRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const ReportSocket socket = ReportSocket::open();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_other = ::chroot("/proc") == 0 && ::setgid(65534) == 0 && ::setuid(65534) == 0;
    ::_exit(is_other && hand_over(socket.address(), "lost-h-3.json", "") ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(names(socket.take()), "lost-h-3.json=;");
}

TEST(ReportSocket, ForgetsWhatComesWithoutItsToken) {
  const ReportSocket socket = ReportSocket::open();
  for (const char* token : {".aaaaaaaaaaaaaaaaaaaaaaaa", ".a"})
    EXPECT_TRUE(hand_over(name_of(socket.address()) + token, "lost-h-1.json", ""));
  EXPECT_TRUE(hand_over(socket.address(), "../lost-h-1.json", ""));
  EXPECT_EQ(names(socket.take()), "");
}

TEST(ReportSocket, ThatSomebodyFilledMayHaveMissedSomething) {
  const ReportSocket socket = ReportSocket::open();
  const std::string guessed = name_of(socket.address()) + ".guessed";
  int sent = 0;
  while (sent < 100'000 && hand_over(guessed, "x", "")) ++sent;
  ASSERT_LT(sent, 100'000);
  EXPECT_GT(sent, 100);
  EXPECT_FALSE(hand_over(socket.address(), "lost-h-1.json", ""));
  Handed handed = socket.take();
  EXPECT_TRUE(handed.is_full && handed.files.empty());
  EXPECT_TRUE(hand_over(socket.address(), "lost-h-1.json", ""));
  handed = socket.take();
  EXPECT_EQ(names(handed), "lost-h-1.json=;");
  EXPECT_FALSE(handed.is_full);
}

TEST(ReportSocket, NonsenseIsHandedToNobody) {
  const ReportSocket socket = ReportSocket::open();
  for (const std::string& address :
       {std::string(), std::string("."), std::string("x"), std::string(".x"), std::string("x."),
        std::string("nobody.x"), std::string(200, 'a') + ".b"})
    EXPECT_FALSE(hand_over(address, "lost-h-1.json", "")) << address;
  EXPECT_FALSE(hand_over(socket.address(), std::string(1'000, 'a'), ""));
  EXPECT_FALSE(hand_over(socket.address(), "finding-h-1-0.json", std::string(10'000'000, 'a')));
  EXPECT_EQ(names(socket.take()), "");
  EXPECT_TRUE(ReportSocket().take().files.empty());
}

TEST(ReportSocket, AMessageIsATokenATimeANameAndAText) {
  const auto file = read_handed("token 12 lost-h-1.json\n{}\n", "token");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->name, "lost-h-1.json");
  EXPECT_EQ(file->text, "{}\n");
  EXPECT_EQ(file->written, 12);
  EXPECT_FALSE(read_handed(" 12 lost-h-1.json\n", ""));
  for (const std::string_view message :
       {"", "token", "token ", "token 12 lost-h-1.json", "toke 12 lost-h-1.json\n", "token12 lost-h-1.json\n",
        "token-12 lost-h-1.json\n", "token  lost-h-1.json\n", "token x lost-h-1.json\n", "token 12\n",
        "token 12\nlost-h-1.json \n", "token -1 lost-h-1.json\n", "token 12 ../lost-h-1.json\n",
        "token 99999999999999999999 lost-h-1.json\n"})
    EXPECT_FALSE(read_handed(message, "token")) << message;
  EXPECT_FALSE(read_handed(std::string_view("token 12 lost-h\0-1.json\n", 25), "token"));
}

TEST(ReportSocket, MovedItIsTheSame) {
  ReportSocket first = ReportSocket::open();
  const std::string address = first.address();
  ReportSocket second = std::move(first);
  ReportSocket third;
  third = std::move(second);
  EXPECT_EQ(third.address(), address);
  EXPECT_TRUE(hand_over(address, "lost-h-1.json", ""));
  EXPECT_EQ(names(third.take()), "lost-h-1.json=;");
}

}  // namespace
}  // namespace trapline
