import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.helix.HelixManager;
import org.apache.helix.HelixManagerFactory;
import org.apache.helix.InstanceType;
import org.apache.helix.participant.statemachine.StateModelFactory;

/** The participants of this process, by cluster and instance, and how their transitions are to behave. */
final class Participants {
  private final String zooKeeper;
  private final Peer peer;
  private final Map<String, HelixManager> running = new ConcurrentHashMap<>();
  /** By cluster, instance, partition, from and to: "fail", or how many milliseconds a transition takes. */
  private final Map<String, String> behaviour = new ConcurrentHashMap<>();

  Participants(String zooKeeper, Peer peer) {
    this.zooKeeper = zooKeeper;
    this.peer = peer;
  }

  /** All verbs take the cluster and the instance; "behave" also the partition, from, to, and what to do. */
  List<String> decide(String verb, List<String> args) throws Exception {
    String cluster = args.get(0);
    String instance = args.get(1);
    String key = cluster + "/" + instance;
    switch (verb) {
      case "start":
        start(cluster, instance);
        return Collections.emptyList();
      case "stop":
        running.remove(key).disconnect();
        return Collections.emptyList();
      case "session":
        return Collections.singletonList(running.get(key).getSessionId());
      case "behave":
        behaviour.put(String.join("/", args.subList(0, 5)), args.get(5));
        return Collections.emptyList();
      default:
        throw new IllegalArgumentException("no such verb: " + verb);
    }
  }

  private void start(String cluster, String instance) throws Exception {
    HelixManager manager = HelixManagerFactory.getZKHelixManager(cluster, instance, InstanceType.PARTICIPANT, zooKeeper);
    running.put(cluster + "/" + instance, manager);
    manager.getStateMachineEngine().registerStateModelFactory("OnlineOffline", new StateModelFactory<Replica>() {
      @Override
      public Replica createNewStateModel(String resource, String partition) {
        return new Replica(Participants.this, cluster, instance, resource, partition);
      }
    });
    manager.connect();
  }

  /** Tells the tester, and takes the time or throws as it was told to. */
  void transition(Replica replica, String from, String to) throws Exception {
    tell("begin", replica, from, to);
    String how = behaviour.get(String.join("/", replica.cluster, replica.instance, replica.partition, from, to));
    if ("fail".equals(how)) {
      tell("failed", replica, from, to);
      throw new IllegalStateException("told to fail");
    }
    if (how != null) {
      Thread.sleep(Long.parseLong(how));
    }
    tell("end", replica, from, to);
  }

  void tell(String phase, Replica replica, String from, String to) {
    peer.tell("*", phase, Arrays.asList(replica.cluster, replica.instance, replica.resource, replica.partition, from, to));
  }
}
