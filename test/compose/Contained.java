import java.io.IOException;
import java.io.InputStream;
import java.net.ServerSocket;
import java.net.Socket;

/**
 * Runs the protocol server in a container, reachable from other containers, until it is stopped. Without this class, the server
 * listens on 127.0.0.1 only, and ends with its standard input. Argument: port.
 */
public class Contained {
  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[0]);
    System.setIn(new Endless());
    daemon(() -> forward(new ServerSocket(port), port + 1));
    Server.main(new String[] {Integer.toString(port + 1)});
  }

  private static void forward(ServerSocket listener, int port) throws IOException {
    while (true) {
      Socket client = listener.accept();
      daemon(() -> {
        try (client; Socket server = new Socket("127.0.0.1", port)) {
          client.setTcpNoDelay(true);
          server.setTcpNoDelay(true);
          daemon(() -> copy(client, server));
          copy(server, client);
        }
      });
    }
  }

  private static void copy(Socket from, Socket to) throws IOException {
    from.getInputStream().transferTo(to.getOutputStream());
    to.shutdownOutput();
  }

  private interface Task {
    void run() throws Exception;
  }

  private static void daemon(Task task) {
    Thread thread = new Thread(() -> {
      try {
        task.run();
      } catch (Exception ended) {
        // One side has disconnected, so the other is closed.
      }
    });
    thread.setDaemon(true);
    thread.start();
  }

  private static final class Endless extends InputStream {
    @Override public synchronized int read() throws IOException {
      try {
        while (true) wait();
      } catch (InterruptedException interrupted) {
        throw new IOException(interrupted);
      }
    }
  }
}
