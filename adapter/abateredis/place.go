package abateredis

import (
	"runtime"
	"slices"
	"sync/atomic"
)

// place is where idempotency keys are kept: what addresses, master, database and prefix name. Keys stay where they
// were begun, so a place outlives the fleet's stay there. After that it connects again when somebody asks for a key.
type place struct {
	link atomic.Pointer[link]
}

// sameKeys reports whether two configurations name the same keys.
func (c Config) sameKeys(other Config) bool {
	return slices.Equal(sorted(c.Addresses), sorted(other.Addresses)) && c.Master == other.Master &&
		c.Cluster == other.Cluster && c.Database == other.Database && c.Prefix == other.Prefix
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// placeOf returns the place that l leads to, for which l is the way from now on. f.mu is held.
func (f *Fleet) placeOf(l *link) *place {
	for _, p := range f.places {
		if p.link.Load().config.sameKeys(l.config) {
			p.link.Store(l)
			return p
		}
	}
	p := new(place)
	p.link.Store(l)
	f.places = append(f.places, p)
	return p
}

// retire gives the place a link without connections, and returns the one before, which is to be closed; nil if there
// is nothing to close. What the place connects after that ends with the last store that keeps its keys there.
func (p *place) retire() *link {
	before := p.link.Load()
	l, err := connect(before.config)
	if err != nil { // the files of its credentials have gone: it keeps the connections that it has
		return nil
	}
	p.link.Store(l)
	runtime.AddCleanup(p, (*link).close, l)
	return before
}

// leftFor returns the link to where the fleet keeps keys now, nil if that is still p or nowhere. A place that the fleet
// has left may be out of reach for ever: then its holders, and who looks for earlier keys, find only the new one.
func (f *Fleet) leftFor(p *place) *link {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil || f.keys == p {
		return nil
	}
	return f.keys.link.Load()
}
