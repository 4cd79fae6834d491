package idempotency_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/policy/idempotency"
)

// sends is a sender who shows these fields.
func sends(fields map[string]string) idempotency.Sender {
	return idempotency.Sender{Field: func(name string) string { return fields[name] }}
}

func TestTheScopeOfAKeyIsItsPrincipal(t *testing.T) {
	type fields = map[string]string
	ann, bob := fields{"authorization": "Bearer ann"}, fields{"authorization": "Bearer bob"}
	named := func(name string, f fields) idempotency.Sender {
		s := sends(f)
		s.Name = name
		return s
	}
	certified := func(name string, f fields) idempotency.Sender {
		s := sends(f)
		s.Certificate = name
		return s
	}
	trusted := func(f fields) idempotency.Sender {
		s := sends(f)
		s.Trusted = true
		return s
	}
	for name, c := range map[string]struct {
		scope    string
		one, two idempotency.Sender
		same     bool
	}{
		"the same credential":   {"", sends(ann), sends(ann), true},
		"another credential":    {"", sends(ann), sends(bob), false},
		"a credential and none": {"", sends(ann), sends(nil), false},
		"none at all":           {"", sends(nil), sends(nil), true},
		"another API key": {
			"", sends(fields{"x-api-key": "1"}), sends(fields{"x-api-key": "2"}), false,
		},
		"the same value in another field": {
			"", sends(fields{"x-api-key": "1"}), sends(fields{"api-key": "1"}), false,
		},
		"a shared Authorization and another API key": {
			"", sends(fields{"authorization": "x", "x-api-key": "1"}), sends(fields{"authorization": "x", "x-api-key": "2"}),
			false,
		},
		"one name, a token that was renewed":  {"", named("ann", ann), named("ann", bob), true},
		"another name":                        {"", named("ann", ann), named("bob", ann), false},
		"a name that looks like a credential": {"", named("Bearer ann", nil), sends(ann), false},
		"one certificate":                     {"", certified("ann", nil), certified("ann", nil), true},
		"another certificate":                 {"", certified("ann", nil), certified("bob", nil), false},
		"credentials before certificates":     {"", certified("mesh", ann), certified("mesh", bob), false},
		"by credential: the name does not count": {
			"credential", named("gateway", ann), named("gateway", bob), false,
		},
		"everybody": {"everybody", sends(ann), named("bob", bob), true},
		"a header of a trusted peer": {
			"header:X-User", trusted(fields{"x-user": "ann", "authorization": "1"}),
			trusted(fields{"x-user": "ann", "authorization": "2"}), true,
		},
		"another value of it": {
			"header:X-User", trusted(fields{"x-user": "ann"}), trusted(fields{"x-user": "bob"}), false,
		},
		"a header that anybody wrote opens no other's": {
			"header:X-User", sends(fields{"x-user": "ann", "authorization": "1"}),
			sends(fields{"x-user": "ann", "authorization": "2"}), false,
		},
		"a header that anybody wrote is not a trusted one": {
			"header:X-User", trusted(fields{"x-user": "ann"}), sends(fields{"x-user": "ann"}), false,
		},
		"a header that is a credential": {
			"header:X-Key", sends(fields{"x-key": "1"}), sends(fields{"x-key": "2"}), false,
		},
		"without the header: by credential": {"header:X-User", sends(ann), sends(bob), false},
		"one cookie among others that change": {
			"cookie:sid", sends(fields{"cookie": "a=1; sid=x"}), sends(fields{"cookie": "sid=x; a=2"}), true,
		},
		"another cookie": {
			"cookie:sid", sends(fields{"cookie": "sid=x"}), sends(fields{"cookie": "sid=y"}), false,
		},
		"a cookie of another name": {
			"cookie:sid", sends(fields{"cookie": "xsid=x; SID=y"}), sends(nil), true,
		},
		"a cookie with a comma": {
			"cookie:sid", sends(fields{"cookie": "sid=v1,ann"}), sends(fields{"cookie": "sid=v1,bob"}), false,
		},
		"a cookie twice": {"cookie:sid", sends(fields{"cookie": "sid=x; sid=y"}), sends(fields{"cookie": "sid=x"}), false},
		"cookies alone do not tell principals apart": {
			"", sends(fields{"cookie": "sid=x"}), sends(fields{"cookie": "sid=y"}), true,
		},
		"with a credential, cookies do not matter": {
			"", sends(fields{"authorization": "x", "cookie": "a"}), sends(fields{"authorization": "x", "cookie": "b"}), true,
		},
		"the end of one part is not the beginning of other": {
			"", sends(fields{"authorization": "ab"}), sends(fields{"authorization": "a", "x-api-key": "b"}), false,
		},
	} {
		one, _ := idempotency.Principal(c.scope, c.one)
		two, _ := idempotency.Principal(c.scope, c.two)
		if (one == two) != c.same {
			t.Errorf("%s: the same is %v, want %v", name, one == two, c.same)
		}
	}
}

func TestAKeyThatComesBackWithOtherCookiesIsAMismatch(t *testing.T) {
	print := func(fields map[string]string) idempotency.Fingerprint {
		_, compared := idempotency.Principal("", sends(fields))
		return idempotency.FingerprintOf("POST", "/", nil).With(compared)
	}
	type fields = map[string]string
	first, again := print(fields{"cookie": "sid=x"}), print(fields{"cookie": "sid=x"})
	if first == print(fields{"cookie": "sid=y"}) {
		t.Error("somebody with another session gets the answer")
	}
	if first != again || print(nil) != idempotency.FingerprintOf("POST", "/", nil) {
		t.Error("the same cookies make another fingerprint")
	}
	if print(fields{"authorization": "a", "cookie": "sid=x"}) != print(fields{"authorization": "a", "cookie": "sid=y"}) {
		t.Error("cookies matter beside a credential")
	}
}

func TestAKeyThatComesBackForAnotherHostIsAMismatch(t *testing.T) {
	print := func(scope, host string) idempotency.Fingerprint {
		s := sends(map[string]string{"authorization": "ann", "cookie": "sid=x"})
		s.Host = host
		_, compared := idempotency.Principal(scope, s)
		return idempotency.FingerprintOf("POST", "/", nil).With(compared)
	}
	for _, scope := range []string{"", "credential", "everybody", "cookie:sid", "header:X-User"} {
		one := print(scope, "one.example")
		if one == print(scope, "two.example") || one == print(scope, "") {
			t.Errorf("scope %q: another host gets the answer", scope)
		}
		if one != print(scope, "ONE.example.:8443") {
			t.Errorf("scope %q: the same host is another", scope)
		}
		if print(scope, "192.0.2.1:80") != print(scope, "192.0.2.2") ||
			print(scope, "[2001:db8::1]:80") != print(scope, "192.0.2.2") {
			t.Errorf("scope %q: another instance of the service is another host", scope)
		}
	}
}

func TestAStoredKeyHoldsNoCredential(t *testing.T) {
	secret := "s3cret-t0ken"
	principal, _ := idempotency.Principal("", sends(map[string]string{"authorization": "Bearer " + secret}))
	if key := idempotency.StoreKey("orders", principal, "k"); strings.Contains(key, secret) || len(key) != 64 {
		t.Errorf("the store gets %q", key)
	}
}
