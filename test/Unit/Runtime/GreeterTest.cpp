// Who gets in at a door of a run, and who does not: strangers that say nothing,
// half of a greeting or what is not true, that play back, pass on or send back
// what they heard. The secret alone opens, and no stranger keeps its owner out.

#include "Network/Greeter.h"

#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace accel::rt;

namespace {

constexpr std::chrono::milliseconds kLong{20000};

Hello helloOf(int64_t from, int64_t to, uint32_t number) {
  Hello hello;
  hello.kind = Hello::Lane;
  hello.from = from;
  hello.to = to;
  hello.number = number;
  return hello;
}

/// A connection of whoever it may be; with a port, from there.
Socket knock(const Endpoint &there, uint16_t port = 0) {
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int one = 1;
  linger reset{1, 0};
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(made.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = port;
  if (bind(made.get(), reinterpret_cast<sockaddr *>(&place), sizeof place) != 0)
    return Socket();
  place.sin_addr.s_addr = there.address;
  place.sin_port = there.port;
  if (connect(made.get(), reinterpret_cast<sockaddr *>(&place), sizeof place) !=
      0)
    return Socket();
  return made;
}

void say(const Socket &to, const void *data, size_t size) {
  ASSERT_EQ(send(to.get(), data, size, MSG_NOSIGNAL),
            static_cast<ssize_t>(size));
}

/// What comes until the other closes, or `most` bytes have.
std::string hear(const Socket &from, size_t most) {
  std::string text(most, 0);
  size_t done = 0;
  timeval patience{20, 0};
  setsockopt(from.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  while (done < most) {
    ssize_t got = recv(from.get(), &text[done], most - done, 0);
    if (got < 0)
      EXPECT_EQ(errno, ECONNRESET) << "nobody answers or closes";
    if (got <= 0)
      break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

/// Rank 1 of three, of which 0 and 2 are on other machines.
class GreeterTest : public ::testing::Test {
protected:
  GreeterTest() { EXPECT_TRUE(secret.make().ok()); }

  /// Strangers may stay as long as they like: nothing may wait for them.
  void listen(size_t mostStrangers = 256) {
    Greeter::Options options;
    options.mostStrangers = mostStrangers;
    options.strangerPatience = std::chrono::hours(1);
    server = std::make_unique<Greeter>(secret, options, [](const Hello &hello) {
      return hello.kind == Hello::Lane && hello.to == 1 &&
             (hello.from == 0 || hello.from == 2) && hello.number < 4;
    });
    std::vector<Socket> doors;
    doors.push_back(takePort(htonl(INADDR_LOOPBACK), door));
    inherited = Socket(dup(doors[0].get()));
    ASSERT_TRUE(server->start(std::move(doors)).ok());
  }

  /// Whether a process that has a secret comes in, and knows it.
  bool comesIn(const Secret &own, const Hello &hello, const Endpoint &there,
               std::chrono::milliseconds patience = kLong) {
    Greeter::Options options;
    options.patience = patience;
    options.probes = true;
    Greeter client(own, options, [](const Hello &) { return false; });
    EXPECT_TRUE(client.start({}).ok());
    size_t number = client.tryOut(hello, there);
    bool isIn = false;
    client.wait(kLong, [&](const Greeter::Results &results) {
      isIn = bool(results.attempts[number].socket);
      return results.attempts[number].isOver;
    });
    return isIn;
  }
  bool comesIn(int64_t from, uint32_t number) {
    return comesIn(secret, helloOf(from, 1, number), door);
  }
  /// Whoever comes in knows it before the server has read the last of the
  /// proof: it waits for as many as are expected.
  size_t comers(size_t expected = 0) {
    size_t count = 0;
    server->wait(kLong, [&](const Greeter::Results &results) {
      count = results.comers.size();
      return count >= expected;
    });
    return count;
  }

  Secret secret;
  Endpoint door;
  Socket inherited; ///< The door, as the process that forked a rank has it.
  std::unique_ptr<Greeter> server;
};

TEST_F(GreeterTest, BothSidesKnowThatTheOtherIsOfTheRun) {
  listen();
  EXPECT_TRUE(comesIn(0, 3));
  EXPECT_TRUE(comesIn(2, 0));
  EXPECT_TRUE(server->wait(kLong, [](const Greeter::Results &results) {
    return results.comers.count({0, 3}) && results.comers.count({2, 0});
  }));
}

TEST_F(GreeterTest, WhatIsSaidAfterwardsIsWhole) {
  listen();
  Greeter client(secret, {}, [](const Hello &) { return false; });
  ASSERT_TRUE(client.start({}).ok());
  client.tryOut(helloOf(0, 1, 2), door);
  ASSERT_TRUE(client.wait(kLong, [](const Greeter::Results &results) {
    return bool(results.attempts[0].socket);
  }));
  client.stop();
  Greeter::Results mine = client.takeResults();
  say(mine.attempts[0].socket, "bytes", 5);
  ASSERT_TRUE(server->wait(kLong, [](const Greeter::Results &results) {
    return results.comers.count({0, 2}) > 0;
  }));
  server->stop();
  EXPECT_EQ(hear(server->takeResults().comers.at({0, 2}), 5), "bytes");
}

TEST_F(GreeterTest, AnotherSecretProvesNothing) {
  listen();
  Secret other;
  ASSERT_TRUE(other.make().ok());
  std::chrono::milliseconds soon(200);
  EXPECT_FALSE(comesIn(other, helloOf(0, 1, 0), door, soon));
  EXPECT_FALSE(comesIn(Secret(), helloOf(0, 1, 0), door, soon));
  EXPECT_EQ(comers(), 0u);
}

TEST_F(GreeterTest, NumbersThatNobodyHasAreNotAnswered) {
  listen();
  Hello old = helloOf(0, 1, 0), probe = old;
  --old.version;
  probe.kind = Hello::Probe;
  for (const Hello &hello :
       {helloOf(1000000000, 1, 1), helloOf(-5, 1, 1), helloOf(1, 1, 0),
        helloOf(0, 0, 0), helloOf(0, 1, 4), helloOf(0, 1, ~0u),
        helloOf(INT64_MIN, 1, 0), old, probe}) {
    Socket stranger = knock(door);
    say(stranger, &hello, sizeof hello);
    EXPECT_EQ(hear(stranger, 1), "") << hello.from << " " << hello.number;
    // Not even of who knows the secret.
    EXPECT_FALSE(comesIn(secret, hello, door, std::chrono::milliseconds(100)));
  }
  EXPECT_EQ(comers(), 0u);
  EXPECT_TRUE(comesIn(0, 0));
}

TEST_F(GreeterTest, StrangersWhoSayNothingOrHalfKeepNobodyOut) {
  listen();
  std::vector<Socket> strangers;
  Hello hello = helloOf(0, 1, 0);
  for (size_t said : {0, 1, 23, 24, 63})
    for (int i = 0; i < 20; ++i) {
      strangers.push_back(knock(door));
      say(strangers.back(), &hello, said);
    }
  strangers.push_back(knock(door)); // all but the proof's last byte
  say(strangers.back(), &hello, sizeof hello);
  EXPECT_EQ(hear(strangers.back(), 32).size(), 32u);
  say(strangers.back(), &hello, 31);
  EXPECT_TRUE(comesIn(0, 0));
  EXPECT_TRUE(comesIn(2, 3));
  EXPECT_EQ(comers(2), 2u);
}

TEST_F(GreeterTest, OfTooManyStrangersTheOldestGoes) {
  listen(/*mostStrangers=*/4);
  std::vector<Socket> strangers;
  for (int i = 0; i < 100; ++i)
    strangers.push_back(knock(door));
  EXPECT_EQ(hear(strangers[0], 1), "");
  EXPECT_TRUE(comesIn(0, 1));
  EXPECT_EQ(hear(strangers[90], 1), "");
}

// Of a process that may open no more files.
TEST_F(GreeterTest, StrangersLeaveFilesForTheRun) {
  int told[2], filled[2];
  ASSERT_EQ(pipe(told) | pipe(filled), 0);
  pid_t stranger = fork();
  if (stranger == 0) {
    (void)!read(told[0], &door, sizeof door);
    std::vector<Socket> many;
    for (int i = 0; i < 100; ++i)
      many.push_back(knock(door));
    (void)!write(filled[1], "x", 1);
    pause();
  }
  listen();
  rlimit before = {}, few = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  few = before;
  Socket next(dup(0));
  few.rlim_cur = static_cast<rlim_t>(next.get()) + 20;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  char byte = 0;
  EXPECT_EQ(write(told[1], &door, sizeof door), ssize_t(sizeof door));
  EXPECT_EQ(read(filled[0], &byte, 1), 1);
  EXPECT_TRUE(comesIn(2, 2));
  setrlimit(RLIMIT_NOFILE, &before);
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
  for (int end : {told[0], told[1], filled[0], filled[1]})
    close(end);
}

TEST_F(GreeterTest, StrangersGoWhenTheirTimeIsOver) {
  Greeter::Options options;
  options.strangerPatience = std::chrono::milliseconds(10);
  server = std::make_unique<Greeter>(secret, options,
                                     [](const Hello &) { return true; });
  std::vector<Socket> doors;
  doors.push_back(takePort(htonl(INADDR_LOOPBACK), door));
  ASSERT_TRUE(server->start(std::move(doors)).ok());
  EXPECT_EQ(hear(knock(door), 1), "");
}

TEST_F(GreeterTest, AGreetingThatIsPlayedBackIsNone) {
  listen();
  Socket first = knock(door);
  Endpoint here, there;
  ASSERT_TRUE(findEndpoints(first, here, there));
  Socket saved(dup(first.get()));
  Greeting greeting = Greeting::ask(std::move(first), secret, helloOf(0, 1, 0));
  // What it says is what somebody on the wire would have heard.
  Hello hello = greeting.hello();
  std::string nonce(32, 0), proof(32, 0);
  ASSERT_EQ(recv(saved.get(), nonce.data(), 32, MSG_PEEK | MSG_WAITALL), 32);
  std::string text = "asker   ";
  text.append(reinterpret_cast<char *>(&hello), sizeof hello);
  text += nonce;
  for (const Endpoint &end : {here, there}) {
    text.append(reinterpret_cast<const char *>(&end.address), 4);
    text.append(reinterpret_cast<const char *>(&end.port), 2);
  }
  Secret::Bytes proved = secret.prove(text.data(), text.size());
  proof.assign(proved.begin(), proved.end());
  pollfd ready{saved.get(), POLLIN, 0};
  while (greeting.goOn() == Greeting::State::Going)
    poll(&ready, 1, 1000);
  ASSERT_EQ(greeting.goOn(), Greeting::State::Proven);
  ASSERT_EQ(comers(1), 1u);

  // The proof above is right: said by hand on a connection of its own, it
  // opens.
  auto greet = [&](bool plays) {
    Socket again = knock(door, here.port);
    say(again, &hello, sizeof hello);
    std::string told = hear(again, 32);
    EXPECT_EQ(told.size(), 32u);
    if (!plays) {
      text.replace(8 + sizeof hello, 32, told);
      proved = secret.prove(text.data(), text.size());
      say(again, proved.data(), proved.size());
    } else {
      say(again, proof.data(), proof.size());
    }
    return hear(again, 32).size() == 32;
  };
  // The port is free once both ends of it are gone.
  server->stop();
  { Greeter::Results gone = server->takeResults(); }
  { Socket closed = greeting.takeSocket(); }
  saved = Socket();
  listen();
  there = door;
  text.resize(text.size() - 6);
  text.append(reinterpret_cast<const char *>(&there.address), 4);
  text.append(reinterpret_cast<const char *>(&there.port), 2);
  EXPECT_TRUE(greet(/*plays=*/false));
  proof.assign(proved.begin(), proved.end());
  EXPECT_FALSE(greet(/*plays=*/true));
  EXPECT_EQ(comers(1), 1u);
}

/// A listener of a stranger's, which gives each who comes to `serve`.
class FalseDoor {
public:
  explicit FalseDoor(std::function<void(Socket)> serve) {
    door = takePort(htonl(INADDR_LOOPBACK), place);
    EXPECT_EQ(::listen(door.get(), 16), 0);
    thread = std::thread([this, serve] {
      pollfd ready{door.get(), POLLIN, 0};
      while (!isOver)
        if (poll(&ready, 1, 10) == 1)
          serve(Socket(accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    });
  }
  ~FalseDoor() {
    isOver = true;
    thread.join();
  }
  Endpoint place;

private:
  Socket door;
  std::atomic<bool> isOver{false};
  std::thread thread;
};

TEST_F(GreeterTest, WhoSendsBackAProofIsNobody) {
  std::atomic<int> heard{0};
  FalseDoor mirror([&](Socket one) {
    std::string hello = hear(one, sizeof(Hello));
    say(one, hello.data() + sizeof(Hello) - 32, 32); // the same nonce
    std::string proof = hear(one, 32);
    heard += proof.size() == 32;
    send(one.get(), proof.data(), proof.size(), MSG_NOSIGNAL);
    hear(one, 1); // until it is gone
  });
  EXPECT_FALSE(comesIn(secret, helloOf(0, 1, 0), mirror.place,
                       std::chrono::milliseconds(200)));
  EXPECT_GE(heard, 1);
}

TEST_F(GreeterTest, WhoPassesOnWhatItHearsIsNobody) {
  listen();
  std::atomic<size_t> proofs{0};
  FalseDoor between([&](Socket one) {
    Socket other = knock(door);
    pollfd ready[] = {{one.get(), POLLIN, 0}, {other.get(), POLLIN, 0}};
    char bytes[256];
    size_t said = 0;
    while (poll(ready, 2, 1000) > 0)
      for (int i = 0; i < 2; ++i) {
        if (!ready[i].revents)
          continue;
        ssize_t got = recv(ready[i].fd, bytes, sizeof bytes, 0);
        if (got <= 0)
          return;
        said += i == 0 ? static_cast<size_t>(got) : 0;
        proofs += said == sizeof(Hello) + 32;
        send(ready[1 - i].fd, bytes, static_cast<size_t>(got), MSG_NOSIGNAL);
      }
  });
  EXPECT_FALSE(comesIn(secret, helloOf(0, 1, 0), between.place,
                       std::chrono::milliseconds(200)));
  EXPECT_GE(proofs, 1u) << "it never passed a proof on";
  EXPECT_EQ(comers(), 0u);
}

TEST_F(GreeterTest, WhoWasTurnedAwayComesAgain) {
  // Twice nobody of the run is there.
  std::atomic<int> turns{0};
  Endpoint place;
  {
    FalseDoor rude([&](Socket) { ++turns; });
    place = rude.place;
    Greeter client(secret, {}, [](const Hello &) { return false; });
    ASSERT_TRUE(client.start({}).ok());
    client.tryOut(helloOf(0, 1, 0), place);
    for (int look = 0; turns < 3 && look < 2000; ++look)
      usleep(10000);
  }
  EXPECT_GE(turns, 3);
}

TEST_F(GreeterTest, APortThatDoesNotListenYetIsTriedAgain) {
  Socket taken = takePort(htonl(INADDR_LOOPBACK), door);
  Greeter client(secret, {}, [](const Hello &) { return false; });
  ASSERT_TRUE(client.start({}).ok());
  client.tryOut(helloOf(0, 1, 0), door);
  EXPECT_FALSE(client.wait(std::chrono::milliseconds(100),
                           [](const Greeter::Results &results) {
                             return results.attempts[0].isOver;
                           }));
  server = std::make_unique<Greeter>(secret, Greeter::Options(),
                                     [](const Hello &) { return true; });
  std::vector<Socket> doors;
  doors.push_back(std::move(taken));
  ASSERT_TRUE(server->start(std::move(doors)).ok());
  EXPECT_TRUE(client.wait(kLong, [](const Greeter::Results &results) {
    return bool(results.attempts[0].socket);
  }));
}

TEST_F(GreeterTest, DoorsAreAtTheirAddressAloneAndClose) {
  listen();
  Endpoint other = door;
  other.address = htonl(INADDR_LOOPBACK + 1); // of the same machine
  EXPECT_FALSE(knock(other));
  EXPECT_TRUE(knock(door));
  server->stop();
  EXPECT_FALSE(knock(door));
}

TEST(Network, ListsOfMpiChooseNetworks) {
  uint32_t address = htonl(0x0a4d0003); // 10.77.0.3
  EXPECT_TRUE(isChosen("eth0", address, "", ""));
  EXPECT_TRUE(isChosen("eth0", address, "lo,eth0", ""));
  EXPECT_FALSE(isChosen("eth0", address, "eth", ""));
  EXPECT_TRUE(isChosen("eth0", address, "10.77.0.0/24", ""));
  EXPECT_TRUE(isChosen("eth0", address, "10.77.0.3/32", ""));
  EXPECT_FALSE(isChosen("eth0", address, "10.77.0.4/32", ""));
  EXPECT_FALSE(isChosen("eth0", address, "10.78.0.0/16,ib0", ""));
  EXPECT_TRUE(isChosen("eth0", address, "0.0.0.0/0", ""));
  EXPECT_FALSE(isChosen("eth0", address, "", "docker0,eth0"));
  EXPECT_FALSE(isChosen("eth0", address, "", "10.77.0.0/16"));
  EXPECT_TRUE(isChosen("eth0", address, "", "127.0.0.0/8"));
  EXPECT_TRUE(isChosen("eth0", address, "eth0", "eth0")) << "as Open MPI does";
}

TEST(Secret, ProofsAreHmacOfSha256) {
  // RFC 4231's keys are not 32 bytes long; this is OpenSSL's word:
  // openssl dgst -sha256 -mac hmac -macopt hexkey:0b0b… (32 bytes)
  Secret secret;
  ASSERT_TRUE(secret.take(std::string(32, '\x0b')));
  EXPECT_FALSE(secret.take("short"));
  Secret::Bytes proof = secret.prove("Hi There", 8);
  char text[65];
  for (size_t i = 0; i < proof.size(); ++i)
    std::snprintf(text + 2 * i, 3, "%02x", proof[i]);
  EXPECT_STREQ(
      text, "198a607eb44bfbc69903a0f1cf2bbdc5ba0aa3f3d9ae3c1c7a3b1696a0b68cf7");
  EXPECT_TRUE(secret.isProof(proof.data(), "Hi There", 8));
  for (size_t i : {0, 31}) {
    Secret::Bytes other = proof;
    other[i] ^= 1;
    EXPECT_FALSE(secret.isProof(other.data(), "Hi There", 8));
  }
}

} // namespace
