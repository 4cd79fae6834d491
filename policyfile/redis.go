package policyfile

import (
	"cmp"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/strictyaml"
)

// Redis is where instances share what is marked fleet: true: the section redis of the policy file. The zero Redis is
// off.
type Redis struct {
	// Addresses are those of the Redis or Valkey, host:port. One is a single server; with cluster some of its nodes;
	// with master its Sentinels.
	Addresses []string `yaml:"addresses" example:"[\"redis:6379\"]"`
	// Master is the name of the master that the Sentinels at addresses know. Empty: addresses are not Sentinels.
	Master string `yaml:"master" example:"mymaster"`
	// Cluster reports whether the addresses are nodes of a Redis Cluster.
	Cluster bool `yaml:"cluster"`
	// Username is the user of the access control list to log in as. Empty: the default user.
	Username string `yaml:"username" example:"abate"`
	// PasswordFile is the path of a file with the password. Empty: none is needed.
	PasswordFile string `yaml:"passwordFile" example:"/etc/abate/redis-password"`
	// Database is the number of the database. Range 0 to 1000000. Zero is the first, and the only one of a cluster.
	Database int `yaml:"database" range:"0..1000000" example:"1"`
	// Prefix begins every key there, so that several fleets can use one Redis; instances with the same prefix share. At
	// most 100 bytes, no braces. Empty means the default, "abate:".
	Prefix string `yaml:"prefix" example:"'abate:'"`
	// Timeout is how long to wait for Redis before going on without it. Range 1ms to 10s. Zero means the default, 20ms.
	Timeout time.Duration `yaml:"timeout" range:"1ms..10s" example:"20ms"`
	// Replicas is how many replicas must have a step of an idempotency key before it counts. The master is asked to
	// wait for them. Set it where a replica may take over, best to the number of replicas of each master. Otherwise a
	// failover can forget requests that were already answered, and they are done again. While fewer replicas are up,
	// requests with a key are refused as if Redis were away. Range 0 to 100. Zero waits for none.
	Replicas int `yaml:"replicas" range:"0..100" example:"1"`
	// TLS reports whether the addresses speak TLS.
	TLS bool `yaml:"tls"`
	// Embedded starts a Redis inside this process, for experiments: no other process sees it, and it forgets everything
	// when the process ends.
	Embedded bool `yaml:"embedded"`
}

// Enabled reports whether there is a Redis.
func (r Redis) Enabled() bool { return r.Embedded || len(r.Addresses) > 0 }

// WithDefaults returns r with defaults filled in. A Redis that is off stays off.
func (r Redis) WithDefaults() Redis {
	if !r.Enabled() {
		return r
	}
	r.Prefix = cmp.Or(r.Prefix, "abate:")
	r.Timeout = cmp.Or(r.Timeout, 20*time.Millisecond)
	return r
}

var redisShape = newRedisShape()

func newRedisShape() *strictyaml.Shape {
	s := strictyaml.ShapeOf(reflect.TypeFor[Redis]())
	s.Find("addresses").NotEmpty = "name at least one, or remove redis"
	return s
}

// redis reads the section redis.
func (d *decoder) redis(e strictyaml.Entry, into *Redis) {
	r := d.reader(redisShape, "", "redis", e.Key)
	r.Read(redisShape, e.Value, reflect.ValueOf(into).Elem())
	var m mistakes
	into.validate(&m)
	r.check(m, nil, into.WithDefaults(), nil)
}

// validate checks the rules between fields.
func (r *Redis) validate(m *mistakes) {
	for i, a := range r.Addresses {
		host, port, err := net.SplitHostPort(a)
		if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || host == "" || portErr != nil || n == 0 {
			m.add(fmt.Sprintf("addresses[%d]", i), strconv.Quote(a)+" is not an address",
				`allowed: host:port, for example "redis:6379"`)
		}
	}
	if strings.ContainsAny(r.Prefix, "{}") || len(r.Prefix) > 100 {
		m.add("prefix", strictyaml.Quote(r.Prefix)+" cannot begin a key",
			`allowed: at most 100 bytes without braces, which choose the node of a cluster; for example "abate:"`)
	}
	switch {
	case !r.Enabled():
		m.add("addresses", "is missing", `for example addresses: ["redis:6379"], or embedded: true for trying`)
	case r.Embedded && len(r.Addresses) > 0:
		m.add("embedded", "a Redis in this process has no addresses", "remove embedded, or the addresses")
	case r.Embedded:
		r.validateEmbedded(m)
	case r.Cluster && r.Master != "":
		m.add("master", "a cluster has no Sentinels", "remove cluster, or the master")
	case r.Cluster && r.Database != 0:
		m.add("database", fmt.Sprintf("a cluster has no database %d", r.Database), "remove database")
	case len(r.Addresses) > 1 && !r.Cluster && r.Master == "":
		m.add("addresses[1]", "one Redis has one address",
			"add cluster: true if they are nodes of a cluster, or master if they are Sentinels")
	}
	if r.Username != "" && r.PasswordFile == "" && !r.Embedded {
		m.add("username", "has no effect without a password", "add passwordFile, or remove username")
	}
}

// CanForgetKeys reports whether a failover can forget idempotency keys whose answers were given out: another server may
// take over, and none has to have what the first one wrote.
func (r *Redis) CanForgetKeys() bool { return (r.Master != "" || r.Cluster) && r.Replicas == 0 }

// validateEmbedded refuses what only a Redis elsewhere can have.
func (r *Redis) validateEmbedded(m *mistakes) {
	for _, c := range []struct {
		key string
		set bool
	}{{"master", r.Master != ""}, {"cluster", r.Cluster}, {"username", r.Username != ""},
		{"passwordFile", r.PasswordFile != ""}, {"replicas", r.Replicas != 0}, {"tls", r.TLS}} {
		if c.set {
			m.add(c.key, "has no effect", "remove it: embedded is a Redis in this process")
		}
	}
}

// mistakes collects what is wrong with a section, as the Validate methods of package abate do.
type mistakes []*abate.FieldError

func (m *mistakes) add(path, problem, fix string) {
	*m = append(*m, &abate.FieldError{Path: path, Problem: problem, Fix: fix})
}
