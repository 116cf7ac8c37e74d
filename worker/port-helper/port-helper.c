/*
 * The worker runs this program inside of a container, beside the container's own, through the engine: the worker itself may be in a
 * container and see neither the network namespace nor the processes of this one. Every container sees this program as
 * `/.berth/port-helper`, read-only. It is not part of the image, needs nothing from it, and ends with the container.
 *
 *   port-helper listeners
 *       Prints the local address of each socket that listens, as /proc/net/tcp and tcp6 have it: hexadecimal, one a line.
 *
 *   port-helper forward ADDRESS PORT TARGET TARGET_PORT
 *       Listens on PORT of ADDRESS, which is that of the container, and connects each connection to TARGET_PORT of TARGET, on which the
 *       program listens and which only the container reaches: 127.0.0.1 or ::1.
 *
 *   port-helper within SECONDS PROGRAM [ARGUMENT...]
 *       Runs a program that SIGALRM ends if it runs for longer than this.
 *
 * Exit codes: 0; 1 with a message if something fails, 2 for any other arguments, 126 if PROGRAM cannot be executed, 127
 * if it is not found.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { exit_failed = 1, exit_usage = 2, exit_not_executable = 126, exit_not_found = 127 };

/* A container may open as many ports as it likes; the worker shows a few. */
enum { listeners_max = 256 };

/* The state LISTEN of /proc/net/tcp. */
enum { tcp_listen = 0x0a };

/* Read and written at once; kept only while the other side does not read. */
static char buffer[64 * 1024];

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "port-helper: %s: %s\n", what, strerror(errno));
  exit(exit_failed);
}

/* ---- listeners ---------------------------------------------------------------------------------------------------------- */

static void print_listeners(const char *path, int *left) {
  FILE *table = fopen(path, "re");
  if (!table) return;
  char line[512], local[64];
  unsigned state;
  while (*left > 0 && fgets(line, sizeof line, table)) {
    if (sscanf(line, " %*u: %63[0-9A-Fa-f:] %*s %x", local, &state) != 2 || state != tcp_listen) continue;
    puts(local);
    (*left)--;
  }
  fclose(table);
}

static int listeners(void) {
  int left = listeners_max;
  print_listeners("/proc/net/tcp", &left);
  print_listeners("/proc/net/tcp6", &left);
  return 0;
}

/* ---- forward ------------------------------------------------------------------------------------------------------------ */

/* One of the two connections of a link. */
struct end {
  struct link *link;
  struct end *other;
  int fd;
  bool is_watched;
  bool is_connecting;
  /* The other side sends no more. */
  bool has_ended;
  /* We send no more. */
  bool is_shut;
  /* It was reset: nothing can be written to it, but what it has sent is still read. */
  bool is_reset;
  /* Bytes that are still to be written to this connection. */
  char *pending;
  size_t offset, length;
};

struct link {
  struct end client, program;
};

static int events = -1;
static int listener = -1;
static bool is_listening = false;
static struct sockaddr_storage target;
static socklen_t target_length;

static void watch_listener(bool wanted) {
  if (wanted == is_listening) return;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  if (epoll_ctl(events, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener, &event) != 0) fail("epoll");
  is_listening = wanted;
}

static void close_end(struct end *end, bool abruptly) {
  struct linger now = {.l_onoff = 1, .l_linger = 0};
  if (abruptly) setsockopt(end->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(end->fd);
  free(end->pending);
}

/* Closes both connections; abruptly, both sides see a reset. A descriptor is free again, so the listener may accept. */
static void close_link(struct link *link, bool abruptly) {
  close_end(&link->client, abruptly);
  close_end(&link->program, abruptly);
  free(link);
  watch_listener(true);
}

/* Watches a connection for its next operations. Without any it is not watched at all: epoll would report its end forever. */
static bool watch(struct end *end) {
  uint32_t wanted = 0;
  if (end->is_connecting || end->length > 0) wanted |= EPOLLOUT;
  if (!end->is_connecting && !end->other->is_connecting && !end->has_ended && end->other->length == 0) wanted |= EPOLLIN;
  if (wanted == 0 && !end->is_watched) return true;
  struct epoll_event event = {.events = wanted, .data.ptr = end};
  int change = wanted == 0 ? EPOLL_CTL_DEL : end->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  end->is_watched = wanted != 0;
  return epoll_ctl(events, change, end->fd, &event) == 0;
}

static bool would_block(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/* Forwards the end of one direction, once everything before it is written. */
static void pass_end(struct end *from) {
  struct end *to = from->other;
  if (!from->has_ended || to->length > 0 || to->is_shut) return;
  to->is_shut = true;
  shutdown(to->fd, SHUT_WR);
}

/* Discards what is still to be written to a connection that was reset. Returns whether it may have bytes to read. */
static bool stop_writing(struct end *end) {
  free(end->pending);
  end->pending = NULL;
  end->offset = end->length = 0;
  end->is_reset = true;
  return !end->has_ended;
}

/* After a write that has failed, returns whether the link stays open. */
static bool survives_failure(struct end *end) {
  return (errno == EPIPE || errno == ECONNRESET) && stop_writing(end);
}

static bool write_pending(struct end *end) {
  ssize_t written = send(end->fd, end->pending + end->offset, end->length, MSG_NOSIGNAL);
  if (written < 0) return would_block() || survives_failure(end);
  end->offset += (size_t)written;
  end->length -= (size_t)written;
  if (end->length > 0) return true;
  free(end->pending);
  end->pending = NULL;
  end->offset = 0;
  return true;
}

static bool keep(struct end *end, const char *bytes, size_t length) {
  end->pending = malloc(length);
  if (!end->pending) return false;
  memcpy(end->pending, bytes, length);
  end->offset = 0;
  end->length = length;
  return true;
}

/*
 * Reads once and writes to the other side; keeps the bytes that the other side does not accept. A program may answer before it has
 * read everything, and close its connection, which resets it: the client gets the answer before the reset.
 */
static bool copy(struct end *from) {
  struct end *to = from->other;
  ssize_t received = recv(from->fd, buffer, sizeof buffer, 0);
  if (received < 0) return would_block();
  if (received == 0) {
    from->has_ended = true;
    return !from->is_reset;
  }
  if (to->is_reset) return true;
  ssize_t written = send(to->fd, buffer, (size_t)received, MSG_NOSIGNAL);
  if (written < 0 && !would_block()) return survives_failure(to);
  size_t done = written < 0 ? 0 : (size_t)written;
  return done == (size_t)received || keep(to, buffer + done, (size_t)received - done);
}

static bool finish_connecting(struct end *end) {
  int problem = 0;
  socklen_t length = sizeof problem;
  if (getsockopt(end->fd, SOL_SOCKET, SO_ERROR, &problem, &length) != 0 || problem != 0) return false;
  end->is_connecting = false;
  return true;
}

static bool handle(struct end *end, uint32_t happened) {
  if (end->is_connecting) {
    if (!finish_connecting(end)) return false;
  } else {
    if (happened & EPOLLERR && !stop_writing(end)) return false;
    if (end->length > 0 && happened & (EPOLLOUT | EPOLLHUP) && !write_pending(end)) return false;
    bool reads = !end->has_ended && end->other->length == 0 && !end->other->is_connecting;
    if (reads && happened & (EPOLLIN | EPOLLHUP) && !copy(end)) return false;
  }
  pass_end(end);
  pass_end(end->other);
  return watch(end) && watch(end->other);
}

static void serve(struct end *end, uint32_t happened) {
  struct link *link = end->link;
  if (!handle(end, happened)) close_link(link, true);
  else if (link->client.is_shut && link->program.is_shut) close_link(link, false);
}

static void start_end(struct end *end, struct link *link, struct end *other, int fd) {
  int on = 1;
  *end = (struct end){.link = link, .other = other, .fd = fd};
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void accept_client(void) {
  int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client < 0) {
    /* Out of descriptors or memory: the next link that closes frees some. */
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) watch_listener(false);
    return;
  }
  struct link *link = malloc(sizeof *link);
  int program = link ? socket(target.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
  if (program < 0) {
    free(link);
    close(client);
    return;
  }
  start_end(&link->client, link, &link->program, client);
  start_end(&link->program, link, &link->client, program);
  link->program.is_connecting = true;
  bool has_begun = connect(program, (struct sockaddr *)&target, target_length) == 0 || errno == EINPROGRESS;
  if (!has_begun || !watch(&link->program)) close_link(link, true);
}

/* Parses an address and a port into a socket address. Returns its length, or 0 if they are not valid. */
static socklen_t parse(const char *address, const char *port, struct sockaddr_storage *into) {
  char *end;
  unsigned long number = strtoul(port, &end, 10);
  if (*port == '\0' || *end != '\0' || number < 1 || number > 65535) return 0;
  struct sockaddr_in *v4 = (struct sockaddr_in *)into;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)into;
  memset(into, 0, sizeof *into);
  if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)number);
    return sizeof *v4;
  }
  if (inet_pton(AF_INET6, address, &v6->sin6_addr) != 1) return 0;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons((uint16_t)number);
  return sizeof *v6;
}

static int forward(const char *address, const char *port, const char *to, const char *to_port) {
  struct sockaddr_storage local;
  socklen_t local_length = parse(address, port, &local);
  target_length = parse(to, to_port, &target);
  if (local_length == 0 || target_length == 0) return exit_usage;
  int on = 1;
  listener = socket(local.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) fail("socket");
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&local, local_length) != 0) fail("bind");
  if (listen(listener, SOMAXCONN) != 0) fail("listen");
  events = epoll_create1(EPOLL_CLOEXEC);
  if (events < 0) fail("epoll");
  watch_listener(true);
  for (;;) {
    /* One at a time: an event may free the connection of the next one. */
    struct epoll_event event;
    int count = epoll_wait(events, &event, 1, -1);
    if (count < 0 && errno != EINTR) fail("epoll");
    if (count < 1) continue;
    if (event.data.ptr == NULL) accept_client();
    else serve(event.data.ptr, event.events);
  }
}

/* ---- within ------------------------------------------------------------------------------------------------------------- */

static int within(const char *seconds, char *const program[]) {
  char *end;
  unsigned long limit = strtoul(seconds, &end, 10);
  if (*seconds == '\0' || *end != '\0' || limit < 1 || limit > 86400) return exit_usage;
  /* An alarm survives exec. */
  alarm((unsigned)limit);
  execvp(program[0], program);
  int code = errno == ENOENT ? exit_not_found : exit_not_executable;
  fprintf(stderr, "port-helper: %s: %s\n", program[0], strerror(errno));
  return code;
}

int main(int count, char *arguments[]) {
  if (count == 2 && strcmp(arguments[1], "listeners") == 0) return listeners();
  if (count == 6 && strcmp(arguments[1], "forward") == 0)
    return forward(arguments[2], arguments[3], arguments[4], arguments[5]);
  if (count >= 4 && strcmp(arguments[1], "within") == 0) return within(arguments[2], arguments + 3);
  fputs("usage: port-helper listeners | forward ADDRESS PORT TARGET TARGET_PORT | within SECONDS PROGRAM [ARGUMENT...]\n", stderr);
  return exit_usage;
}
