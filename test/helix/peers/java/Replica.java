import org.apache.helix.NotificationContext;
import org.apache.helix.model.Message;
import org.apache.helix.participant.statemachine.StateModel;
import org.apache.helix.participant.statemachine.StateModelInfo;
import org.apache.helix.participant.statemachine.Transition;

/** One partition of one participant. Public, with public methods, because Helix calls it by reflection. */
@StateModelInfo(initialState = "OFFLINE", states = {"ONLINE", "ERROR"})
public final class Replica extends StateModel {
  private final Participants participants;
  final String cluster;
  final String instance;
  final String resource;
  final String partition;

  Replica(Participants participants, String cluster, String instance, String resource, String partition) {
    this.participants = participants;
    this.cluster = cluster;
    this.instance = instance;
    this.resource = resource;
    this.partition = partition;
  }

  @Transition(from = "OFFLINE", to = "ONLINE")
  public void onBecomeOnlineFromOffline(Message message, NotificationContext context) throws Exception {
    participants.transition(this, "OFFLINE", "ONLINE");
  }

  @Transition(from = "ONLINE", to = "OFFLINE")
  public void onBecomeOfflineFromOnline(Message message, NotificationContext context) throws Exception {
    participants.transition(this, "ONLINE", "OFFLINE");
  }

  @Transition(from = "OFFLINE", to = "DROPPED")
  public void onBecomeDroppedFromOffline(Message message, NotificationContext context) throws Exception {
    participants.transition(this, "OFFLINE", "DROPPED");
  }

  @Transition(from = "ERROR", to = "OFFLINE")
  public void onBecomeOfflineFromError(Message message, NotificationContext context) throws Exception {
    participants.transition(this, "ERROR", "OFFLINE");
  }

  @Override
  @Transition(from = "ERROR", to = "DROPPED")
  public void onBecomeDroppedFromError(Message message, NotificationContext context) throws Exception {
    participants.transition(this, "ERROR", "DROPPED");
  }

  @Override
  public void reset() {
    participants.tell("reset", this, getCurrentState(), "OFFLINE");
  }
}
