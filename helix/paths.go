package helix

import (
	"fmt"
	"strings"
)

// Cluster is the name of a Helix cluster and gives the paths of its tree, relative to the session's chroot.
type Cluster string

// join puts a path together below the cluster.
func (c Cluster) join(parts ...string) string {
	return "/" + string(c) + "/" + strings.Join(parts, "/")
}

// Root is the cluster's own node.
func (c Cluster) Root() string { return "/" + string(c) }

// ConfigScopes: one record a cluster, participants, resources, constraints.
func (c Cluster) configCluster() string             { return c.join("CONFIGS", "CLUSTER", string(c)) }
func (c Cluster) configParticipants() string        { return c.join("CONFIGS", "PARTICIPANT") }
func (c Cluster) configParticipant(i string) string { return c.join("CONFIGS", "PARTICIPANT", i) }
func (c Cluster) configResources() string           { return c.join("CONFIGS", "RESOURCE") }
func (c Cluster) configResource(r string) string    { return c.join("CONFIGS", "RESOURCE", r) }
func (c Cluster) idealStates() string               { return c.join("IDEALSTATES") }
func (c Cluster) idealState(r string) string        { return c.join("IDEALSTATES", r) }
func (c Cluster) externalViews() string             { return c.join("EXTERNALVIEW") }
func (c Cluster) externalView(r string) string      { return c.join("EXTERNALVIEW", r) }
func (c Cluster) stateModels() string               { return c.join("STATEMODELDEFS") }
func (c Cluster) stateModel(name string) string     { return c.join("STATEMODELDEFS", name) }
func (c Cluster) liveInstances() string             { return c.join("LIVEINSTANCES") }
func (c Cluster) liveInstance(i string) string      { return c.join("LIVEINSTANCES", i) }
func (c Cluster) instances() string                 { return c.join("INSTANCES") }
func (c Cluster) instance(i string) string          { return c.join("INSTANCES", i) }
func (c Cluster) messages(i string) string          { return c.join("INSTANCES", i, "MESSAGES") }
func (c Cluster) message(i, id string) string       { return c.join("INSTANCES", i, "MESSAGES", id) }
func (c Cluster) currentStates(i string) string     { return c.join("INSTANCES", i, "CURRENTSTATES") }
func (c Cluster) sessionStates(i, s string) string  { return c.join("INSTANCES", i, "CURRENTSTATES", s) }
func (c Cluster) currentState(i, s, r string) string {
	return c.join("INSTANCES", i, "CURRENTSTATES", s, r)
}
func (c Cluster) history(i string) string            { return c.join("INSTANCES", i, "HISTORY") }
func (c Cluster) controller() string                 { return c.join("CONTROLLER") }
func (c Cluster) leader() string                     { return c.join("CONTROLLER", "LEADER") }
func (c Cluster) controllerHistory() string          { return c.join("CONTROLLER", "HISTORY") }
func (c Cluster) controllerMessages() string         { return c.join("CONTROLLER", "MESSAGES") }
func (c Cluster) controllerMessage(id string) string { return c.join("CONTROLLER", "MESSAGES", id) }
func (c Cluster) pause() string                      { return c.join("CONTROLLER", "PAUSE") }
func (c Cluster) maintenance() string                { return c.join("CONTROLLER", "MAINTENANCE") }

// Property is a path in the property store, which belongs to the application: Property("causeway", "epoch").
func (c Cluster) Property(parts ...string) string {
	return c.join(append([]string{"PROPERTYSTORE"}, parts...)...)
}

// required lists what must exist before any Java manager connects.
func (c Cluster) required() []string {
	return []string{
		c.idealStates(), c.configCluster(), c.configParticipants(), c.configResources(), c.Property(), c.liveInstances(), c.instances(),
		c.externalViews(), c.controller(), c.stateModels(), c.controllerMessages(), c.join("CONTROLLER", "ERRORS"),
		c.join("CONTROLLER", "STATUSUPDATES"), c.controllerHistory(),
	}
}

// instanceFolders lists the nodes of an instance; the last three are not required by every version, and harmless for all.
func (c Cluster) instanceFolders(i string) []string {
	folders := []string{"MESSAGES", "CURRENTSTATES", "ERRORS", "STATUSUPDATES", "HISTORY", "TASKCURRENTSTATES", "CUSTOMIZEDSTATES"}
	for n, folder := range folders {
		folders[n] = c.join("INSTANCES", i, folder)
	}
	return folders
}

// requiredOfInstance is how many of instanceFolders must exist for an instance to count as set up.
const requiredOfInstance = 4

// checkName refuses what can't be the name of one znode.
func checkName(what, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsRune(name, '/') || strings.IndexFunc(name, unprintable) >= 0 {
		return fmt.Errorf("%s: %q: must be the name of one znode", what, name)
	}
	return nil
}

// unprintable says whether ZooKeeper refuses the character in a path.
func unprintable(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
