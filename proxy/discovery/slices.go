package discovery

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// endpointSlice is what counts of an EndpointSlice of discovery.k8s.io/v1.
type endpointSlice struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	AddressType string `json:"addressType"`
	Endpoints   []struct {
		Addresses  []string `json:"addresses"`
		Conditions struct {
			Ready       *bool `json:"ready"`
			Serving     *bool `json:"serving"`
			Terminating *bool `json:"terminating"`
		} `json:"conditions"`
		Zone  string `json:"zone"`
		Hints *struct {
			ForZones []struct {
				Name string `json:"name"`
			} `json:"forZones"`
		} `json:"hints"`
	} `json:"endpoints"`
	Ports []slicePort `json:"ports"`
}

type slicePort struct {
	Name     string `json:"name"`
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`
}

// member is one endpoint of the slices, before it is decided which of them count.
type member struct {
	Endpoint
	hints []string // zones that should use it
}

// endpointsOf makes the list of a service's slices: the endpoints that are ready; and if none is, those that end and
// still serve, which is better than nobody, as kube-proxy does. With hints for the zone of this program, and a hint at
// each endpoint, only those for the zone: else hints are not meant to be followed. port is the name or the number of
// one, "" for the only one.
func endpointsOf(all map[string]*endpointSlice, port, zone string) ([]Endpoint, error) {
	var ready, ending []member
	for _, s := range all {
		if s.AddressType == "FQDN" || len(s.Endpoints) == 0 {
			continue
		}
		n, err := s.port(port)
		if err != nil {
			return nil, err
		}
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			if len(e.Addresses) == 0 {
				continue
			}
			m := member{Endpoint: Endpoint{Addr: net.JoinHostPort(e.Addresses[0], strconv.Itoa(n)), Zone: e.Zone}}
			if e.Hints != nil {
				for _, z := range e.Hints.ForZones {
					m.hints = append(m.hints, z.Name)
				}
			}
			switch c := &e.Conditions; {
			case c.Ready == nil || *c.Ready: // not said means ready
				ready = append(ready, m)
			case c.Serving != nil && *c.Serving && c.Terminating != nil && *c.Terminating:
				ending = append(ending, m)
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	return plainList(hinted(ready, zone)), nil
}

// hinted are those that are meant for a zone, all where hints are not to be followed.
func hinted(all []member, zone string) []member {
	if zone == "" || slices.ContainsFunc(all, func(m member) bool { return len(m.hints) == 0 }) {
		return all
	}
	ours := slices.DeleteFunc(slices.Clone(all), func(m member) bool { return !slices.Contains(m.hints, zone) })
	if len(ours) == 0 {
		return all
	}
	return ours
}

// plainList orders endpoints. One may be in two slices while it moves from one to the other.
func plainList(all []member) []Endpoint {
	list := make([]Endpoint, len(all))
	for i := range all {
		list[i] = all[i].Endpoint
	}
	order(list)
	return slices.CompactFunc(list, func(a, b Endpoint) bool { return a.Addr == b.Addr })
}

// port finds the port of a slice.
func (s *endpointSlice) port(want string) (int, error) {
	var names []string
	for _, p := range s.Ports {
		if p.Protocol != "" && p.Protocol != "TCP" {
			continue
		}
		names = append(names, strings.TrimPrefix(p.Name+" "+strconv.Itoa(p.Port), " "))
		if want != "" && (p.Name == want || strconv.Itoa(p.Port) == want) {
			return p.Port, nil
		}
	}
	switch {
	case want != "":
		return 0, fmt.Errorf("it has no port %q, only: %s", want, strings.Join(names, ", "))
	case len(names) == 0:
		return 0, fmt.Errorf("it has no TCP port")
	case len(names) > 1:
		return 0, fmt.Errorf("it has several ports: write one of them as discovery.port: %s", strings.Join(names, ", "))
	}
	_, number, _ := strings.Cut(names[0], " ")
	if number == "" {
		number = names[0]
	}
	return strconv.Atoi(number)
}
