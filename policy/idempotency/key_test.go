package idempotency_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/policy/idempotency"
)

func TestKeysAreReadFromTheField(t *testing.T) {
	most := strings.Repeat("k", idempotency.MaxKey)
	for value, want := range map[string]string{
		`"8e03978e-40d5-43dd-bc93-6894a57f9324"`: "8e03978e-40d5-43dd-bc93-6894a57f9324",
		`8e03978e-40d5-43dd-bc93-6894a57f9324`:   "8e03978e-40d5-43dd-bc93-6894a57f9324",
		`a`:                                      "a", ` a `: "a", "\ta\t": "a", ` "a" `: "a", `"a b"`: "a b", `" "`: " ",
		`"a,b;c"`: "a,b;c",
		`"\"\\"`:  `"\`, `"{a}"`: "{a}", `{a}`: "{a}", `a/b+c=:.~!$`: "a/b+c=:.~!$",
		most: most, `"` + most + `"`: most, `"` + strings.Repeat(`\"`, idempotency.MaxKey) +
			`"`: strings.Repeat(`"`, idempotency.MaxKey),
	} {
		if got, err := idempotency.ParseKey(value); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", value, got, err, want)
		}
	}
}

func TestBadKeysAreNamed(t *testing.T) {
	over := strings.Repeat("k", idempotency.MaxKey+1)
	for value, want := range map[string]string{
		"":                                      "it is empty",
		"   ":                                   "it is empty",
		`""`:                                    "it is empty",
		`"`:                                     "closing quote is missing",
		`"abc`:                                  "closing quote is missing",
		over:                                    "has 256 bytes",
		`"` + over + `"`:                        "has 256 bytes",
		strings.Repeat("k", 10<<20):             "has 10485760 bytes",
		`"` + strings.Repeat("k", 10<<20) + `"`: "has 10485762 bytes",
		"a\nb":                                  "byte 2 of it (0x0a) is a control character",
		"\"a\nb\"":                              "byte 3 of it (0x0a) is a control character",
		"a\x00":                                 "(0x00) is a control character",
		"\x7f":                                  "(0x7f) is a control character",
		"\"\x7f\"":                              "control character",
		"é":                                     "byte 1 of it (0xc3) is not ASCII",
		`"é"`:                                   "byte 2 of it (0xc3) is not ASCII",
		"\xff":                                  "not ASCII",
		"a b":                                   "put the key in quotes",
		"a, b":                                  "is a separator",
		"a;b=1":                                 "is a separator",
		`a"b`:                                   "in quotes only",
		`a\b`:                                   "in quotes only",
		`"a", "b"`:                              "after the closing quote, at byte 4",
		`"a";b=1`:                               "after the closing quote",
		`"a"b`:                                  "after the closing quote",
		`"a\b"`:                                 `the backslash at byte 3`,
		`"a\`:                                   "the backslash at byte 3",
		`"a\"`:                                  "closing quote is missing",
	} {
		got, err := idempotency.ParseKey(value)
		if got != "" || !errors.Is(err, idempotency.ErrKey) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%.100q: %q, %v; want an error with %q", value, got, err, want)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		`"a"`, "a", `"\"\\"`, `"a", "b"`, "a b", "\n", `"é"`, strings.Repeat("k", 300), `"` + strings.Repeat(`\\`, 256),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := idempotency.ParseKey(value)
		if err != nil {
			if key != "" || !errors.Is(err, idempotency.ErrKey) || len(err.Error()) > 200 {
				t.Fatalf("%q: %q, %v", value, key, err)
			}
			return
		}
		if idempotency.CheckKey(key) != nil || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Fatalf("%q: %q is no key", value, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := idempotency.ParseKey(quoted); again != key || err != nil {
			t.Fatalf("%q: %q comes back from %q as %q, %v", value, key, quoted, again, err)
		}
	})
}

func TestStoreKeysMeetOnlyWhenAllIsTheSame(t *testing.T) {
	seen := map[string]string{}
	for _, parts := range [][3]string{
		{"", "", ""}, {"a", "", ""}, {"", "a", ""}, {"", "", "a"}, {"ab", "c", "d"}, {"a", "bc", "d"}, {"a", "b", "cd"},
		{"abcd", "", ""},
		{"a\x00", "b", "c"}, {"a", "\x00b", "c"}, {"a", "b", "\x00c"}, {"\x01a", "b", ""}, {"\x01a\x01b", "", ""},
		{"a", "b", strings.Repeat("k", 10<<20)},
		{strings.Repeat("a", 300), "b", ""}, {strings.Repeat("a", 300) + "\x01b", "", ""},
	} {
		key := idempotency.StoreKey(parts[0], parts[1], parts[2])
		if len(key) != 64 || idempotency.CheckKey(key) != nil || key != idempotency.StoreKey(parts[0], parts[1], parts[2]) {
			t.Errorf("%.50q: %q", parts, key)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%.50q and %s meet", parts, other)
		}
		seen[key] = fmt.Sprintf("%.50q", parts)
	}
}

// Instances of two versions share a store while one is rolled out.
func TestKeysAndFingerprintsStayTheSameBetweenVersions(t *testing.T) {
	if got, want := idempotency.StoreKey("orders", "tenant", "key"), "899d2769"; !strings.HasPrefix(got, want) {
		t.Errorf("store key %s, want %s...", got, want)
	}
	if got, want := fmt.Sprintf("%x", idempotency.FingerprintOf("POST", "/orders", []byte("{}"))),
		"13176380"; !strings.HasPrefix(got, want) {
		t.Errorf("fingerprint %s, want %s...", got, want)
	}
}

func TestFingerprintsTellRequestsApart(t *testing.T) {
	seen := map[idempotency.Fingerprint]string{}
	for _, r := range [][3]string{
		{"POST", "/a", ""}, {"POST", "/a", "b"}, {"POST", "/ab", ""}, {"POST", "/a?b", ""}, {"PATCH", "/a", ""},
		{"POST/", "a", ""},
		{"POST", "", "/a"}, {"", "POST/a", ""}, {"", "", "POST/a"}, {"POST", "/a", "\x00"}, {"POST", "/a", "b "},
	} {
		print := idempotency.FingerprintOf(r[0], r[1], []byte(r[2]))
		if print != idempotency.FingerprintOf(r[0], r[1], []byte(r[2])) {
			t.Errorf("%q has two fingerprints", r)
		}
		if other, ok := seen[print]; ok {
			t.Errorf("%q and %s have the same fingerprint", r, other)
		}
		seen[print] = fmt.Sprintf("%q", r)
	}
	if idempotency.FingerprintOf("POST", "/", nil) != idempotency.FingerprintOf("POST", "/", []byte{}) {
		t.Error("no body and an empty one differ")
	}
}
