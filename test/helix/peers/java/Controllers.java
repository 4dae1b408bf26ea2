import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.helix.HelixManager;
import org.apache.helix.HelixManagerFactory;
import org.apache.helix.InstanceType;

/** The controllers of this process, by cluster and name. */
final class Controllers {
  private final String zooKeeper;
  private final Map<String, HelixManager> running = new ConcurrentHashMap<>();

  Controllers(String zooKeeper) {
    this.zooKeeper = zooKeeper;
  }

  /** All verbs take the cluster and the controller's name. */
  List<String> decide(String verb, List<String> args) throws Exception {
    String cluster = args.get(0);
    String name = args.get(1);
    String key = cluster + "/" + name;
    switch (verb) {
      case "start":
        HelixManager manager = HelixManagerFactory.getZKHelixManager(cluster, name, InstanceType.CONTROLLER, zooKeeper);
        manager.connect();
        running.put(key, manager);
        return Collections.emptyList();
      case "stop":
        running.remove(key).disconnect();
        return Collections.emptyList();
      case "leads":
        return Collections.singletonList(String.valueOf(running.get(key).isLeader()));
      default:
        throw new IllegalArgumentException("no such verb: " + verb);
    }
  }
}
