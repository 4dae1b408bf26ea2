package zkhosts

import "sync"

// Hosts is a provider for one connection. The zero value is ready.
type Hosts struct {
	mu      sync.Mutex
	servers []string // guarded by mu
	next    int      // guarded by mu
	tried   int      // guarded by mu; since the last success
}

// Init takes the servers in the order that the library shuffled them to.
func (h *Hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers = servers
	return nil
}

// Len is the number of servers.
func (h *Hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next gives the servers in turn, and says when all were tried in vain: the library rests a second then.
func (h *Hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	retryStart = h.tried > 0 && h.tried%len(h.servers) == 0
	h.tried++
	return server, retryStart
}

// Connected is told of a success.
func (h *Hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}
