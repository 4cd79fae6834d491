package inbound

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/abate-go/abate/internal/check"
	"github.com/abate-go/abate/policy/idempotency"
)

func (v *protectionValidator) keys(k idempotency.Config) {
	for i, m := range k.Methods {
		v.Method(fmt.Sprintf("idempotency.methods[%d]", i), m)
	}
	v.scope(k.Scope)
	if k.Fleet && k.File != "" {
		v.Add("idempotency.file", "is for one instance, and fleet shares the keys of all", "remove one of the two")
	}
}

func (v *protectionValidator) scope(word string) {
	const path, allowed = "idempotency.scope", `allowed: credential, everybody, "header:NAME" and "cookie:NAME", ` +
		`for example "header:X-Api-Key"; empty for what caller says, else the credential`
	kind, name, named := strings.Cut(word, ":")
	switch {
	case word == "", word == idempotency.ScopeCredential, word == idempotency.ScopeEverybody:
	case word == "ip", kind == "header" && (strings.EqualFold(name, "X-Forwarded-For") || strings.EqualFold(name,
		"X-Real-Ip")):
		v.Add(path, "an address does not say whose a key is: others behind the same one would get the answer, "+
			"and the same user from another would be served twice", allowed)
	case !named || kind != "header" && kind != "cookie" || !check.IsToken(name):
		v.Add(path, strconv.Quote(word)+" is not known", allowed)
	}
}

// keyLimits checks the numbers about idempotency keys that no single field can tell. k has its defaults.
func (v *protectionValidator) keyLimits(k idempotency.Config) {
	room, bound := k.MaxMemory, "maxMemory"
	if k.File != "" {
		room, bound = k.MaxFile, "maxFile"
	}
	if int64(k.MaxAnswer) > room && !k.Fleet {
		v.Add("idempotency.maxAnswer", fmt.Sprintf("%d is above %s %d: no such answer could be stored", k.MaxAnswer, bound,
			room), "lower it or raise "+bound)
	}
	v.Below("idempotency.minRetention", k.MinRetention, "retention", k.Retention, "lower it or raise retention")
}

func (v *protectionValidator) idleKeys(k idempotency.Config) {
	const noMethods = "set methods, for example methods: [POST, PATCH]"
	switch {
	case k.Disabled:
	case len(k.Methods) == 0:
		v.Idle("idempotency.required", k.Required, noMethods)
		v.Idle("idempotency.retention", k.Retention != 0, noMethods)
		v.Idle("idempotency.lease", k.Lease != 0, noMethods)
		v.Idle("idempotency.maxBody", k.MaxBody != 0, noMethods)
		v.Idle("idempotency.scope", k.Scope != "", noMethods)
		v.Idle("idempotency.maxAnswer", k.MaxAnswer != 0, noMethods)
		v.Idle("idempotency.keepServerErrors", k.KeepServerErrors, noMethods)
		v.Idle("idempotency.maxMemory", k.MaxMemory != 0, noMethods)
		v.Idle("idempotency.file", k.File != "", noMethods)
		v.Idle("idempotency.maxFile", k.MaxFile != 0, noMethods)
		v.Idle("idempotency.whenFull", k.WhenFull != "", noMethods)
		v.Idle("idempotency.minRetention", k.MinRetention != 0, noMethods)
		v.Idle("idempotency.fleet", k.Fleet, noMethods)
		v.Idle("idempotency.whenAway", k.WhenAway != "", noMethods)
	default:
		const inRedis = "remove it: with fleet the keys are in Redis"
		const inFile = "remove it: the keys are in the file, which maxFile bounds"
		v.Idle("idempotency.maxMemory", k.Fleet && k.MaxMemory != 0, inRedis)
		v.Idle("idempotency.maxMemory", !k.Fleet && k.File != "" && k.MaxMemory != 0, inFile)
		v.Idle("idempotency.maxFile", k.File == "" && k.MaxFile != 0, "set file, for example file: /var/lib/abate/keys.db")
		v.Idle("idempotency.whenFull", k.Fleet && k.WhenFull != "", inRedis)
		v.Idle("idempotency.minRetention", (k.Fleet || k.WhenFull == "refuse") && k.MinRetention != 0,
			"remove it: no key is forgotten early")
		v.Idle("idempotency.whenAway", !k.Fleet && k.WhenAway != "", "set fleet: true, or remove it")
	}
}
