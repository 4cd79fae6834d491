package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

// errNoAddress is an answer that names nobody. It changes nothing: servers that start, or have lost their zone, say
// that.
var errNoAddress = errors.New("the answer has no address")

// query is one look at a name.
type query struct {
	resolver net.Resolver
	server   string // that is asked, "" for the system's
	life     lifetime
}

func newQuery(server string) *query {
	q := &query{server: server}
	q.resolver = net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if server != "" {
			addr = server
		}
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return q.life.reader(c), nil
	}}
	return q
}

// lookDNS looks up the A and AAAA records of c.Name.
func (c *Config) lookDNS(ctx context.Context) ([]Endpoint, time.Duration, error) {
	q := newQuery(c.Server)
	addrs, err := q.addresses(ctx, c.Name)
	if err != nil {
		return nil, 0, err
	}
	var list []Endpoint
	for _, a := range addrs {
		list = append(list, Endpoint{Addr: net.JoinHostPort(a.String(), c.Port)})
	}
	return list, q.life.get(), nil
}

func (q *query) addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	addrs, err := q.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, q.plain(err)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	if len(addrs) == 0 {
		return nil, errNoAddress
	}
	return addrs, nil
}

// plain is a resolver's error without the name, which stands before it already.
func (q *query) plain(err error) error {
	var d *net.DNSError
	switch {
	case !errors.As(err, &d):
		return err
	case q.server == "" && d.Server == "":
		return errors.New(d.Err)
	}
	advice := ""
	if d.IsNotFound {
		advice = ": look at the name in upstreams and discovery of the policy file, or at the server that is asked"
	}
	return fmt.Errorf("%s (asked %s)%s", d.Err, cmp.Or(q.server, d.Server), advice) // the resolver knows nothing of ours
}

// maxAtOnce is how many targets of an SRV record are looked up at once: as many as a resolver's socket buffer bears.
const maxAtOnce = 16

// lookSRV looks up an SRV record, and the addresses of its targets. Those of the lowest priority that has any are the
// endpoints: the others are for when it has none.
func (c *Config) lookSRV(ctx context.Context) ([]Endpoint, time.Duration, error) {
	q := newQuery(c.Server)
	_, records, err := q.resolver.LookupSRV(ctx, "", "", c.Name)
	if err != nil && len(records) == 0 {
		return nil, 0, q.plain(err)
	}
	found, err := q.targets(ctx, records)
	if err != nil {
		return nil, 0, err
	}
	list := ofFirstPriority(records, found)
	if len(list) == 0 {
		return nil, 0, errNoAddress
	}
	return list, q.life.get(), nil
}

// targets looks up the hosts of records. One that does not exist has no addresses; one that cannot be asked about is an
// error: the others would get its share although it may be well.
func (q *query) targets(ctx context.Context, records []*net.SRV) (map[string][]netip.Addr, error) {
	var (
		mu    sync.Mutex
		found = map[string][]netip.Addr{}
		wrong error
		done  sync.WaitGroup
		slots = make(chan struct{}, maxAtOnce)
	)
	for _, r := range records {
		mu.Lock()
		_, twice := found[r.Target]
		if !twice {
			found[r.Target] = nil
		}
		mu.Unlock()
		if twice {
			continue
		}
		slots <- struct{}{}
		done.Go(func() {
			defer func() { <-slots }()
			addrs, err := q.resolver.LookupNetIP(ctx, "ip", r.Target)
			mu.Lock()
			defer mu.Unlock()
			var d *net.DNSError
			if err != nil && !(errors.As(err, &d) && d.IsNotFound) {
				wrong = fmt.Errorf("its target %s: %w", r.Target, q.plain(err))
			}
			found[r.Target] = addrs
		})
	}
	done.Wait()
	return found, wrong
}

// ofFirstPriority makes the list of the records that come first and have addresses.
func ofFirstPriority(records []*net.SRV, found map[string][]netip.Addr) (list []Endpoint) {
	first, heaviest := -1, 0
	for _, r := range records {
		if len(found[r.Target]) > 0 && (first < 0 || int(r.Priority) < first) {
			first = int(r.Priority)
		}
	}
	for _, r := range records {
		if int(r.Priority) == first {
			heaviest = max(heaviest, int(r.Weight))
		}
	}
	for _, r := range records {
		if int(r.Priority) != first {
			continue
		}
		for _, a := range found[r.Target] {
			list = append(list, Endpoint{Addr: net.JoinHostPort(a.Unmap().String(), strconv.Itoa(int(r.Port))),
				Weight: share(int(r.Weight), heaviest)})
		}
	}
	order(list)
	return slices.CompactFunc(list, func(a, b Endpoint) bool { return a.Addr == b.Addr })
}

// share is a weight of an SRV record, which may be up to 65535, among those up to 1000. 0 is the least, as in RFC 2782.
func share(weight, heaviest int) int {
	if heaviest > maxWeight {
		weight = weight * maxWeight / heaviest
	}
	return max(weight, 1)
}

// maxWeight is the largest weight of an endpoint.
const maxWeight = 1000
