/*
 * The first process of every backend that holds a key.
 *
 * It starts the image's own program as its child, forwards signals to it, reaps processes that lost their parent, and exits
 * with the child's exit code, as Docker's own init does. In addition it enforces the lease of the key: the worker of the node
 * writes the moments at which the backend must stop into a file, and renews them. When a moment passes without a renewal, the
 * init stops its child by itself, and when the second one passes it exits. It is process 1 of its PID namespace, so the kernel
 * then kills every other process of the container. No worker, engine or store takes part in that.
 *
 * The lease file is `lease` in the folder of this program. It holds one line of three decimal numbers:
 *
 *     <soft> <hard> <signal>\n
 *
 *   soft    when the child is asked to stop, in milliseconds of CLOCK_BOOTTIME, which counts while the machine is suspended
 *   hard    when the container ends, on the same clock
 *   signal  the number of the signal that asks the child to stop
 *
 * The worker replaces the file by rename, so a reader sees one whole line. The init reads the file only when a moment is due.
 *
 * usage: init PROGRAM [ARGUMENT...]
 *
 * Exit codes: those of the child (128 + n if signal n killed it), 137 if the lease ended, 126 if PROGRAM cannot be executed,
 * 127 if it is not found, 125 if the init itself fails before the child runs. A container without a readable lease never starts
 * its program: a backend that cannot know how long it may act must not act.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  exit_init_failed = 125,
  exit_not_executable = 126,
  exit_not_found = 127,
  exit_signalled = 128,
  exit_lease_over = 128 + SIGKILL,
};

/* Longest line of a lease file: three numbers of at most 20 digits, and their separators. */
enum { lease_line_max = 64 };

/*
 * Twice the longest lease that a worker grants. A moment that is further away was written by another clock: that of a host
 * whose container runtime has a kernel of its own. Such a lease would never end, so it is rejected.
 */
enum { lease_longest_ms = 120000 };

struct lease {
  int64_t soft_ms;
  int64_t hard_ms;
  int signal;
};

static char lease_path[PATH_MAX];

/* Whether the child was asked to stop, by the worker or by the lease: a program may quit at once on a second request. */
static bool asked_to_stop = false;

/* Writes a message to standard error in one call, so that it is one line of the backend's log. */
static void complain(const char *subject, const char *problem) {
  char line[PATH_MAX + 128];
  size_t length = 0;
  const char *parts[] = {"berth-init: ", subject, ": ", problem, "\n"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    size_t part = strnlen(parts[i], sizeof line - length);
    memcpy(line + length, parts[i], part);
    length += part;
  }
  if (write(STDERR_FILENO, line, length) < 0) return;
}

static _Noreturn void fail(const char *subject, int code) {
  complain(subject, strerror(errno));
  _exit(code);
}

static int64_t boot_time_ms(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) fail("clock", exit_init_failed);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The path of `lease` beside this program, whose own path the engine was given as an absolute one. */
static void find_lease(const char *program) {
  const char *slash = strrchr(program, '/');
  size_t folder = slash ? (size_t)(slash - program) + 1 : 0;
  if (folder + sizeof "lease" > sizeof lease_path) {
    errno = ENAMETOOLONG;
    fail(program, exit_init_failed);
  }
  memcpy(lease_path, program, folder);
  memcpy(lease_path + folder, "lease", sizeof "lease");
}

/* Parses digits up to `end`, which must follow them. Returns -1 for anything else, and for numbers that do not fit. */
static int64_t parse_number(const char **text, char end) {
  int64_t number = 0;
  const char *digit = *text;
  for (; *digit >= '0' && *digit <= '9'; digit++) {
    if (number > (INT64_MAX - 9) / 10) return -1;
    number = number * 10 + (*digit - '0');
  }
  if (digit == *text || *digit != end) return -1;
  *text = digit + 1;
  return number;
}

static bool parse_lease(const char *line, struct lease *lease) {
  lease->soft_ms = parse_number(&line, ' ');
  if (lease->soft_ms < 0) return false;
  lease->hard_ms = parse_number(&line, ' ');
  if (lease->hard_ms < 0) return false;
  int64_t signal = parse_number(&line, '\n');
  if (signal < 1 || signal > SIGRTMAX || *line != '\0') return false;
  lease->signal = (int)signal;
  return true;
}

/*
 * Reads the lease file. Leaves `lease` as it is and returns false if it cannot be read, or is not a lease of this machine's
 * clock; `errno` says which.
 */
static bool read_lease(struct lease *lease) {
  char line[lease_line_max + 1];
  int file = open(lease_path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t length = read(file, line, lease_line_max);
  close(file);
  if (length < 0) return false;
  line[length] = '\0';
  struct lease found;
  if (!parse_lease(line, &found)) {
    errno = EINVAL;
    return false;
  }
  if (found.hard_ms - boot_time_ms() > lease_longest_ms) {
    errno = ERANGE;
    return false;
  }
  *lease = found;
  return true;
}

static void arm(int timer, int64_t at_ms) {
  /* A timer of zero is disarmed: a moment that has passed is due at once. */
  if (at_ms < 1) at_ms = 1;
  struct itimerspec due = {.it_value = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000}};
  if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &due, NULL) != 0) fail("timer", exit_init_failed);
}

/* Starts the program with the signal mask that the engine gave this process. */
static pid_t start(char *const arguments[], const sigset_t *mask) {
  pid_t child = fork();
  if (child < 0) fail("fork", exit_init_failed);
  if (child > 0) return child;
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(arguments[0], arguments);
  fail(arguments[0], errno == ENOENT ? exit_not_found : exit_not_executable);
}

/* Reaps all processes that have ended. Exits with the child's code when it is among them. */
static void reap(pid_t child) {
  for (;;) {
    int status;
    pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended <= 0) return;
    if (ended != child) continue;
    _exit(WIFSIGNALED(status) ? exit_signalled + WTERMSIG(status) : WEXITSTATUS(status));
  }
}

/* Reaps on SIGCHLD, and forwards every other signal to the child. */
static void handle_signal(int signals, pid_t child, int stop_signal) {
  struct signalfd_siginfo received;
  if (read(signals, &received, sizeof received) != sizeof received) return;
  int signal = (int)received.ssi_signo;
  if (signal == SIGCHLD) {
    reap(child);
    return;
  }
  if (signal == stop_signal) asked_to_stop = true;
  kill(child, signal);
}

/* Enforces the moments that are due, and arms the timer for the next one. A lease file that cannot be read renews nothing. */
static void enforce(struct lease *lease, int timer, pid_t child) {
  read_lease(lease);
  int64_t now_ms = boot_time_ms();
  if (now_ms >= lease->hard_ms) {
    complain("lease", "the key's lease ended without a renewal, ending the container");
    /* As process 1 the exit is enough; a child is killed here for the case that this is not process 1. */
    kill(child, SIGKILL);
    _exit(exit_lease_over);
  }
  if (now_ms >= lease->soft_ms && !asked_to_stop) {
    complain("lease", "the key's lease was not renewed, asking the program to stop");
    asked_to_stop = true;
    kill(child, lease->signal);
  }
  arm(timer, asked_to_stop || now_ms >= lease->soft_ms ? lease->hard_ms : lease->soft_ms);
}

int main(int count, char *arguments[]) {
  if (count < 2) {
    complain("usage", "init PROGRAM [ARGUMENT...]");
    return exit_init_failed;
  }
  find_lease(arguments[0]);
  struct lease lease;
  if (!read_lease(&lease)) {
    if (errno == ERANGE) complain("lease", "the clock of this container is not the clock of its node");
    else complain(lease_path, strerror(errno));
    return exit_init_failed;
  }
  if (boot_time_ms() >= lease.soft_ms) {
    complain("lease", "the key's lease is over already");
    return exit_lease_over;
  }

  sigset_t all, before;
  /* Not sigfillset(), which leaves out signals that the C library keeps for threads: programs may use them. */
  memset(&all, 0xff, sizeof all);
  /* Faults of the init itself must end it, whatever else is blocked. */
  const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&all, faults[i]);
  if (sigprocmask(SIG_BLOCK, &all, &before) != 0) fail("signals", exit_init_failed);
  int signals = signalfd(-1, &all, SFD_CLOEXEC);
  int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
  if (signals < 0 || timer < 0) fail("descriptors", exit_init_failed);
  /* Adopts orphans of the program even if this is not process 1. */
  prctl(PR_SET_CHILD_SUBREAPER, 1);

  pid_t child = start(arguments + 1, &before);
  arm(timer, lease.soft_ms);
  struct pollfd watched[] = {{.fd = signals, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
  for (;;) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) fail("poll", exit_init_failed);
    if (watched[1].revents) enforce(&lease, timer, child);
    if (watched[0].revents) handle_signal(signals, child, lease.signal);
  }
}
