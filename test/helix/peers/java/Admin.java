import java.util.Arrays;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.helix.HelixAdmin;
import org.apache.helix.manager.zk.ZKHelixAdmin;
import org.apache.helix.model.ExternalView;
import org.apache.helix.model.HelixConfigScope;
import org.apache.helix.model.IdealState;
import org.apache.helix.model.InstanceConfig;
import org.apache.helix.model.OnlineOfflineSMD;
import org.apache.helix.model.builder.HelixConfigScopeBuilder;

/**
 * Helix's administrator. The first argument is always the cluster, but for "clusters".
 *
 * <p>A record is a list of fields: {@code KEY=VALUE} for each of its simple fields, {@code PARTITION>INSTANCE=STATE} for each replica,
 * {@code PARTITION>} for a partition without any.
 */
final class Admin {
  private final HelixAdmin helix;

  Admin(String zooKeeper) {
    helix = new ZKHelixAdmin(zooKeeper);
  }

  List<String> decide(String verb, List<String> args) throws Exception {
    String cluster = args.isEmpty() ? null : args.get(0);
    switch (verb) {
      case "clusters":
        return helix.getClusters();
      case "addCluster": // then the cluster's flags
        helix.addCluster(cluster, false);
        helix.addStateModelDef(cluster, OnlineOfflineSMD.name, OnlineOfflineSMD.build());
        setFlags(cluster, args.subList(1, args.size()));
        break;
      case "setConfig": // then the cluster's flags
        setFlags(cluster, args.subList(1, args.size()));
        break;
      case "dropCluster":
        helix.dropCluster(cluster);
        break;
      case "enableCluster":
        helix.enableCluster(cluster, Boolean.parseBoolean(args.get(1)));
        break;
      case "instances":
        return helix.getInstancesInCluster(cluster);
      case "instance":
        return instance(helix.getInstanceConfig(cluster, args.get(1)));
      case "addInstance":
        helix.addInstance(cluster, config(args.get(1)));
        break;
      case "dropInstance":
        helix.dropInstance(cluster, helix.getInstanceConfig(cluster, args.get(1)));
        break;
      case "enableInstance":
        helix.enableInstance(cluster, args.get(1), Boolean.parseBoolean(args.get(2)));
        break;
      case "enablePartition": // instance, resource, partition, enabled
        helix.enablePartition(Boolean.parseBoolean(args.get(4)), cluster, args.get(1), args.get(2), args.subList(3, 4));
        break;
      case "resetPartition": // instance, resource, partitions
        helix.resetPartition(cluster, args.get(1), args.get(2), args.subList(3, args.size()));
        break;
      default:
        return resource(verb, cluster, args.subList(1, args.size()));
    }
    return Collections.emptyList();
  }

  private List<String> resource(String verb, String cluster, List<String> args) {
    if (verb.equals("resources")) {
      return helix.getResourcesInCluster(cluster);
    }
    String resource = args.get(0);
    switch (verb) {
      case "addResource": // then its ideal state
        helix.addResource(cluster, resource, idealState(resource, args.subList(1, args.size())));
        break;
      case "setIdealState":
        helix.setResourceIdealState(cluster, resource, idealState(resource, args.subList(1, args.size())));
        break;
      case "dropResource":
        helix.dropResource(cluster, resource);
        break;
      case "enableResource":
        helix.enableResource(cluster, resource, Boolean.parseBoolean(args.get(1)));
        break;
      case "idealState":
        IdealState ideal = helix.getResourceIdealState(cluster, resource);
        return ideal == null ? Collections.emptyList() : fields(ideal.getRecord().getSimpleFields(), ideal.getRecord().getMapFields());
      case "externalView":
        ExternalView view = helix.getResourceExternalView(cluster, resource);
        return view == null ? Collections.emptyList() : fields(view.getRecord().getSimpleFields(), view.getRecord().getMapFields());
      default:
        throw new IllegalArgumentException("no such verb: " + verb);
    }
    return Collections.emptyList();
  }

  private void setFlags(String cluster, List<String> flags) {
    Map<String, String> values = new HashMap<>();
    for (String flag : flags) {
      String[] pair = flag.split("=", 2);
      values.put(pair[0], pair[1]);
    }
    HelixConfigScope scope = new HelixConfigScopeBuilder(HelixConfigScope.ConfigScopeProperty.CLUSTER).forCluster(cluster).build();
    helix.setConfig(scope, values);
  }

  private static InstanceConfig config(String instance) {
    int at = instance.lastIndexOf('_');
    InstanceConfig config = new InstanceConfig(instance);
    config.setHostName(instance.substring(0, at));
    config.setPort(instance.substring(at + 1));
    config.setInstanceEnabled(true);
    return config;
  }

  private static List<String> instance(InstanceConfig config) {
    return Arrays.asList(config.getId(), config.getHostName(), config.getPort(), String.valueOf(config.getInstanceEnabled()),
        String.valueOf(new TreeSet<>(config.getTags())), String.valueOf(config.getRecord().getMapFields()));
  }

  private static IdealState idealState(String resource, List<String> fields) {
    IdealState ideal = new IdealState(resource);
    ideal.setRebalanceMode(IdealState.RebalanceMode.CUSTOMIZED);
    ideal.setStateModelDefRef(OnlineOfflineSMD.name);
    ideal.setStateModelFactoryName("DEFAULT");
    for (String field : fields) {
      int at = field.indexOf('>');
      if (at < 0) {
        String[] pair = field.split("=", 2);
        ideal.getRecord().setSimpleField(pair[0], pair[1]);
        continue;
      }
      String partition = field.substring(0, at);
      if (field.endsWith(">")) {
        ideal.getRecord().setMapField(partition, new HashMap<>());
        continue;
      }
      String[] pair = field.substring(at + 1).split("=", 2);
      ideal.setPartitionState(partition, pair[0], pair[1]);
    }
    ideal.setNumPartitions(ideal.getPartitionSet().size());
    return ideal;
  }

  private static List<String> fields(Map<String, String> simple, Map<String, Map<String, String>> replicas) {
    List<String> fields = new ArrayList<>();
    simple.forEach((key, value) -> fields.add(key + "=" + value));
    replicas.forEach((partition, states) -> {
      if (states.isEmpty()) {
        fields.add(partition + ">");
      }
      states.forEach((instance, state) -> fields.add(partition + ">" + instance + "=" + state));
    });
    return fields;
  }
}
