import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Plays Helix roles for tests: any number of controllers, participants and administrators in one process, as its tester asks.
 *
 * <p>Arguments: the port on which the tester listens and ZooKeeper's address. Lines go both ways over that one connection, their fields
 * are separated by tabs. The tester asks {@code id verb argument…} and is answered {@code id ok field…} or {@code id error text}, in any
 * order. What happens by itself is told in lines whose id is {@code *}. The process ends with the connection.
 */
public final class Peer {
  private final Writer out;
  private final Controllers controllers;
  private final Participants participants;
  private final Admin admin;

  private Peer(Writer out, String zooKeeper) {
    this.out = out;
    controllers = new Controllers(zooKeeper);
    participants = new Participants(zooKeeper, this);
    admin = new Admin(zooKeeper);
  }

  public static void main(String[] args) throws IOException {
    try (Socket tester = new Socket(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0]))) {
      tester.setTcpNoDelay(true);
      Peer peer = new Peer(new OutputStreamWriter(tester.getOutputStream(), StandardCharsets.UTF_8), args[1]);
      peer.serve(new BufferedReader(new InputStreamReader(tester.getInputStream(), StandardCharsets.UTF_8)));
    }
    System.exit(0); // Helix leaves threads behind that would keep the process
  }

  private void serve(BufferedReader in) throws IOException {
    // A question may take long (a connect waits for an old session), so each has a thread of its own.
    ExecutorService threads = Executors.newCachedThreadPool();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      List<String> fields = Arrays.asList(line.split("\t", -1));
      threads.execute(() -> answer(fields.get(0), fields.get(1), fields.subList(2, fields.size())));
    }
  }

  private void answer(String id, String verb, List<String> args) {
    try {
      tell(id, "ok", decide(verb, args));
    } catch (Throwable e) { // also errors: the tester must hear of each, and nobody else would
      e.printStackTrace();
      tell(id, "error", Collections.singletonList(e.toString().replaceAll("\\s+", " ")));
    }
  }

  private List<String> decide(String verb, List<String> args) throws Exception {
    String[] part = verb.split("\\.", 2);
    switch (part[0]) {
      case "controller":
        return controllers.decide(part[1], args);
      case "participant":
        return participants.decide(part[1], args);
      case "admin":
        return admin.decide(part[1], args);
      default:
        throw new IllegalArgumentException("no such verb: " + verb);
    }
  }

  /** Sends one line. Once the tester is gone nobody listens, which is no fault of the caller's. */
  synchronized void tell(String id, String kind, List<String> fields) {
    try {
      out.write(id + "\t" + kind);
      for (String field : fields) {
        out.write("\t" + field);
      }
      out.write("\n");
      out.flush();
    } catch (IOException e) {
      e.printStackTrace();
    }
  }
}
