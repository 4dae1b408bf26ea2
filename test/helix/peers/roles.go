package peers

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
)

// Controller is a Java controller of one cluster.
type Controller struct {
	t    testing.TB
	peer *Peer
	id   []string // cluster and name
	gone bool
}

// Controller starts a controller, which leads the cluster unless another does, and stops it at the end of the test.
func (p *Peer) Controller(t testing.TB, cluster, name string) *Controller {
	t.Helper()
	c := &Controller{t: t, peer: p, id: []string{cluster, name}}
	p.must(t, "controller.start", c.id...)
	t.Cleanup(c.Stop)
	return c
}

// Stop disconnects the controller from its cluster. Stopping it again, or after the end of its process, is no error.
func (c *Controller) Stop() {
	c.t.Helper()
	if c.gone || !c.peer.Running() {
		return
	}
	c.gone = true
	stop(c.t, c.peer, "controller.stop", c.id)
}

// Leads says whether the controller thinks that it leads.
func (c *Controller) Leads() bool {
	c.t.Helper()
	return c.peer.must(c.t, "controller.leads", c.id...)[0] == "true"
}

// Participant is a Java participant of one cluster.
type Participant struct {
	t    testing.TB
	peer *Peer
	id   []string // cluster and instance
	gone bool
}

// Participant lets an instance join a cluster and stops it at the end of the test.
func (p *Peer) Participant(t testing.TB, cluster, instance string) *Participant {
	t.Helper()
	part := &Participant{t: t, peer: p, id: []string{cluster, instance}}
	p.must(t, "participant.start", part.id...)
	t.Cleanup(part.Stop)
	return part
}

// Stop lets the instance leave. Stopping it again, or after the end of its process, is no error.
func (p *Participant) Stop() {
	p.t.Helper()
	if p.gone || !p.peer.Running() {
		return
	}
	p.gone = true
	stop(p.t, p.peer, "participant.stop", p.id)
}

// Session is the instance's session id as Helix writes it.
func (p *Participant) Session() string {
	p.t.Helper()
	return p.peer.must(p.t, "participant.session", p.id...)[0]
}

// Hold makes a transition of one partition wait until Fail or Succeed is called for it.
func (p *Participant) Hold(partition, from, to string) {
	p.t.Helper()
	p.behave(partition, from, to, "hold")
}

// Fail makes a transition of one partition fail from now on.
func (p *Participant) Fail(partition, from, to string) {
	p.t.Helper()
	p.behave(partition, from, to, "fail")
}

// Succeed ends what Hold or Fail began.
func (p *Participant) Succeed(partition, from, to string) {
	p.t.Helper()
	p.behave(partition, from, to, "")
}

func (p *Participant) behave(partition, from, to, how string) {
	p.t.Helper()
	p.peer.must(p.t, "participant.behave", p.id[0], p.id[1], partition, from, to, how)
}

// Transitions is what the instance was called for so far, oldest first.
func (p *Participant) Transitions() []Transition {
	p.peer.mu.Lock()
	defer p.peer.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.peer.transitions), func(tr Transition) bool {
		return tr.Cluster != p.id[0] || tr.Instance != p.id[1]
	})
}

// stop also runs in a test's clean-up, where its context has ended.
func stop(t testing.TB, p *Peer, verb string, id []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), readyWithin)
	defer cancel()
	if _, err := p.Ask(ctx, verb, id...); err != nil && p.Running() {
		t.Error(err)
	}
}

// Admin is the Java administrator of one cluster. What it is refused fails the test, but for Try.
type Admin struct {
	t       testing.TB
	peer    *Peer
	cluster string
}

// Admin returns the administrator of a cluster, which need not exist yet.
func (p *Peer) Admin(t testing.TB, cluster string) Admin {
	t.Helper()
	return Admin{t: t, peer: p, cluster: cluster}
}

// Do does what a verb of java/Admin.java says, on the cluster.
func (a Admin) Do(verb string, args ...string) []string {
	a.t.Helper()
	return a.peer.must(a.t, "admin."+verb, append([]string{a.cluster}, args...)...)
}

// Try is Do for what may be refused.
func (a Admin) Try(verb string, args ...string) ([]string, error) {
	return a.peer.Ask(a.t.Context(), "admin."+verb, append([]string{a.cluster}, args...)...)
}

// AddCluster makes the cluster, with the state model OnlineOffline and these fields of its configuration.
func (a Admin) AddCluster(config map[string]string) {
	a.t.Helper()
	var flags []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		flags = append(flags, key+"="+config[key])
	}
	a.Do("addCluster", flags...)
}

// AddResource adds a resource with that ideal state. NUM_PARTITIONS and the modes need not be given.
func (a Admin) AddResource(resource string, ideal Record) {
	a.t.Helper()
	a.Do("addResource", append([]string{resource}, ideal.fields()...)...)
}

// SetIdealState replaces a resource's ideal state.
func (a Admin) SetIdealState(resource string, ideal Record) {
	a.t.Helper()
	a.Do("setIdealState", append([]string{resource}, ideal.fields()...)...)
}

// DropResource removes a resource.
func (a Admin) DropResource(resource string) {
	a.t.Helper()
	a.Do("dropResource", resource)
}

// EnableInstance enables or disables an instance.
func (a Admin) EnableInstance(instance string, enabled bool) {
	a.t.Helper()
	a.Do("enableInstance", instance, strconv.FormatBool(enabled))
}

// EnablePartition enables or disables one partition on an instance.
func (a Admin) EnablePartition(instance, resource, partition string, enabled bool) {
	a.t.Helper()
	a.Do("enablePartition", instance, resource, partition, strconv.FormatBool(enabled))
}

// EnableResource enables or disables a resource.
func (a Admin) EnableResource(resource string, enabled bool) {
	a.t.Helper()
	a.Do("enableResource", resource, strconv.FormatBool(enabled))
}

// ResetPartition sends a replica in ERROR back to OFFLINE.
func (a Admin) ResetPartition(instance, resource, partition string) {
	a.t.Helper()
	a.Do("resetPartition", instance, resource, partition)
}

// IdealState reads a resource's ideal state; it has no maps if there is none.
func (a Admin) IdealState(resource string) Record {
	a.t.Helper()
	return parseRecord(a.Do("idealState", resource))
}

// ExternalView reads a resource's external view; it has no maps if there is none.
func (a Admin) ExternalView(resource string) Record {
	a.t.Helper()
	return parseRecord(a.Do("externalView", resource))
}
