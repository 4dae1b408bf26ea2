import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
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
  /** By cluster, instance, partition, from and to: "fail", "hold" until that is changed, or "" for success. Guarded by itself. */
  private final Map<String, String> behaviour = new HashMap<>();

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
        synchronized (behaviour) {
          behaviour.put(String.join("/", args.subList(0, 5)), args.get(5));
          behaviour.notifyAll();
        }
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

  /** Tells the tester, and waits or throws as it was told to. */
  void transition(Replica replica, String from, String to) throws Exception {
    tell("begin", replica, from, to);
    String key = String.join("/", replica.cluster, replica.instance, replica.partition, from, to);
    boolean fails;
    synchronized (behaviour) {
      while ("hold".equals(behaviour.get(key))) {
        behaviour.wait();
      }
      fails = "fail".equals(behaviour.get(key));
    }
    tell(fails ? "failed" : "end", replica, from, to);
    if (fails) {
      throw new IllegalStateException("told to fail");
    }
  }

  void tell(String phase, Replica replica, String from, String to) {
    peer.tell("*", phase, Arrays.asList(replica.cluster, replica.instance, replica.resource, replica.partition, from, to));
  }
}
