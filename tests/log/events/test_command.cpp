#include <gtest/gtest.h>

#include "../reason/reason_case.hpp"
#include "log/events/command.hpp"

namespace trapline {
namespace {

struct Shown {
  std::string line, command;  // command empty: none may be told
};

std::string command_in(const std::string& line, std::string_view script = "") {
  CommandFinder finder;
  finder.line(line);
  return finder.command_of(script).value_or("");
}

TEST(Command, IsFoundWhereItIsPrinted) {
  const Shown rows[] = {
      {"python train.py", "python train.py"},
      {"+ python train.py --lr 0.1", "python train.py --lr 0.1"},
      {"++ torchrun --nproc_per_node=8 train.py cfg.yaml", "torchrun --nproc_per_node=8 train.py cfg.yaml"},
      {"$ python3.11 -u train.py", "python3.11 -u train.py"},
      {"user@gpu7:~/proj$ CUDA_VISIBLE_DEVICES=0 python3 teach.py",
       "CUDA_VISIBLE_DEVICES=0 python3 teach.py"},
      {"(base) root@0a1b:/workspace# accelerate launch --num_processes 2 run.py",
       "accelerate launch --num_processes 2 run.py"},
      {"+ srun -N 2 --ntasks-per-node=8 python train.py", "srun -N 2 --ntasks-per-node=8 python train.py"},
      {"$ nohup python train.py > train.log 2>&1 &", "python train.py"},
      {"$ python train.py 2>&1 | tee log", "python train.py"},
      {"[2024-09-06 15:53:30,664] [INFO] [runner.py:585:main] cmd = /usr/bin/python3 -u -m "
       "deepspeed.launcher.launch "
       "--world_info=eyJsb2NhbGhvc3QiOiBbMCwgMV19 --master_port=29500 run.py --deepspeed",
       "/usr/bin/python3 -u -m deepspeed.launcher.launch --world_info=eyJsb2NhbGhvc3QiOiBbMCwgMV19 "
       "--master_port=29500 run.py --deepspeed"},
      {"subprocess.CalledProcessError: Command '['/usr/bin/python', 'train.py', '--x', '1']' returned "
       "non-zero exit "
       "status 1.",
       "/usr/bin/python train.py --x 1"},
      {"Step 5/7 : CMD python train.py", ""},
      {"CMD python train.py", "python train.py"},
      {"Running command: python -m torch.distributed.run --nproc-per-node 2 train.py",
       "python -m torch.distributed.run --nproc-per-node 2 train.py"},
  };
  for (const auto& [line, command] : rows) EXPECT_EQ(command_in(line), command) << line;
}

TEST(Command, WhatCannotBeToldIsCutOff) {
  EXPECT_EQ(command_in("+ python train.py --name 'my run' --lr 1"), "python train.py --name ...");
  EXPECT_EQ(command_in("$ python train.py --out $HOME/x"), "python train.py --out ...");
  EXPECT_EQ(command_in("$ python train.py " + std::string(2000, 'x')), "python train.py ...");
}

TEST(Command, HostileTextIsNeverACommand) {
  for (const char* line : {
           "$ rm -rf / train.py",
           "$ python -c import_os train.py",
           "$ python train.py;rm -rf ~",  // the script's name would end in ;rm
           "$ python $(curl x.invalid).py",
           "$ python `id`.py",
           "$ python 'a b.py'",
           "$ python a\\ b.py",
           "$ python ~/x.py",
           "$ sudo python train.py",
           "$ LD_PRELOAD=/tmp/x.so python train.py",
           "$ PYTHONPATH=/tmp/x python train.py",
           "$ PATH=/tmp python train.py",
           "$ python -m pip install x.py",
           "$ python -m http.server x.py",
           "$ torchrun --no-python rm train.py",
           "$ torchrun -m evil train.py",
           "$ accelerate config train.py",
           "$ srun --prolog=/tmp/x python train.py",
           "$ srun rm train.py",
           "$ mpirun -x LD_PRELOAD=x python train.py",
           "$ bash train.py",
           "$ ./train.py",
           "$ python \xe2\x80\xae"
           "train.py",
           "python train.pyc",
           "loading python train.py",  // prose
           "python train.py does not work for me",
           "CMD [\"python\", \"train.py\"]",
           "Command '['rm', '-rf', 'x.py']' returned non-zero exit status 1.",
           "Command '['python', 'a b;c.py']' returned",
       }) {
    EXPECT_EQ(command_in(line), "") << line;
  }
  for (const char* line :
       {"$ python train.py && rm -rf x", "$ python train.py ; rm x", "$ python train.py | sh"})
    EXPECT_EQ(command_in(line), "python train.py") << line;
  EXPECT_EQ(command_in("$ python train.py &&rm"), "python train.py ...");
}

TEST(Command, IsTheOneThatStartedTheScript) {
  CommandFinder finder;
  finder.line("$ python prepare.py");
  finder.line("$ torchrun --nproc-per-node 2 tools/train.py --lr 1");
  finder.line("Command '['python', 'tools/train.py']' returned non-zero exit status 1.");
  EXPECT_EQ(finder.command_of("/srv/job/tools/train.py"),
            "torchrun --nproc-per-node 2 tools/train.py --lr 1");
  EXPECT_EQ(finder.command_of("/srv/job/other.py"), std::nullopt);
  EXPECT_EQ(finder.command_of(""), std::nullopt);  // two that are nothing to each other
}

TEST(Command, FromTheScriptAlone) {
  EXPECT_EQ(command_from_script("/srv/job/train.py"), "python /srv/job/train.py ...");
  for (const char* script :
       {"", "<stdin>", "/srv/my job/train.py", "/srv/$(id)/train.py", "/usr/bin/torchrun", "-x.py"})
    EXPECT_EQ(command_from_script(script), std::nullopt) << script;
}

TEST(Command, IsGuardedAtTheRightPlace) {
  EXPECT_EQ(guarded("python train.py"), "trapline run -- python train.py");
  EXPECT_EQ(guarded("CUDA_VISIBLE_DEVICES=0 python a.py"),
            "CUDA_VISIBLE_DEVICES=0 trapline run -- python a.py");
  EXPECT_EQ(guarded("srun -N 2 python a.py"), "srun -N 2 trapline run --report DIR -- python a.py");
  EXPECT_EQ(guarded("torchrun --nproc-per-node 2 a.py"), "trapline run -- torchrun --nproc-per-node 2 a.py");
}

constexpr std::string_view kFault =
    "Traceback (most recent call last):\n"
    "  File \"train.py\", line 41, in <module>\n"
    "    print(loss.item())\n"
    "RuntimeError: CUDA error: device-side assert triggered\n";
constexpr std::string_view kAssertion =
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
    "thread: "
    "[5,0,0] Assertion `t >= 0 && t < n_classes` failed.\n";

std::string last_fix(const std::string& log) {
  const Finding finding = root(log);
  return finding.fix.empty() ? std::string() : finding.fix.back();
}

TEST(Rerun, IsTheLastAdvice) {
  const std::string ends = ": it stops at the bad value and names it";
  EXPECT_EQ(last_fix("+ python train.py --lr 1\n" + std::string(kFault)),
            "run it again: `trapline run -- python train.py --lr 1`" + ends);
  EXPECT_EQ(last_fix(std::string(kFault)),
            "run it again: `trapline run -- python train.py ...`, with your own arguments" + ends);
  EXPECT_EQ(last_fix("RuntimeError: CUDA error: device-side assert triggered\n"),
            "run it again under `trapline run -- ...`" + ends);
  // A certain cause, too: the value is what is missing.
  EXPECT_EQ(last_fix("$ python train.py\n" + std::string(kAssertion) + std::string(kFault)),
            "run it again: `trapline run -- python train.py`" + ends);
}

TEST(Rerun, IsNotSaidWhereItWouldNotHelp) {
  EXPECT_EQ(last_fix("mykernel.cu:12: k: block: [0,0,0], thread: [0,0,0] Assertion `x < n` failed.\n" +
                     std::string(kFault))
                .find("trapline run"),
            std::string::npos);
  EXPECT_EQ(last_fix("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
                .find("trapline run"),
            std::string::npos);
}

}  // namespace
}  // namespace trapline
