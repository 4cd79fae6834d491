package lint

import "slices"

// Rule is one rule: what its page says.
type Rule struct {
	ID       string
	Title    string
	Severity Severity // usually; a finding may have another, as its page says
	Why      string   // what is wrong, and what comes of it
	Source   string   // where that is known from
	Fine     string   // when it is right all the same
	Fix      string
}

// Rules returns all rules, in the order of their ids.
func Rules() []Rule {
	return slices.Concat(rulesOfAmplification, rulesOfTime, rulesOfOutcomes, rulesOfPace, rulesOfGuards, rulesOfFiles)
}

// RuleOf returns the rule with an id, and whether there is one.
func RuleOf(id string) (Rule, bool) {
	all := Rules()
	i := slices.IndexFunc(all, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return all[i], true
}

var severities = func() map[string]Severity {
	of := map[string]Severity{}
	for _, r := range Rules() {
		of[r.ID] = r.Severity
	}
	return of
}()

// severity is that of a rule's findings, Warning for one that is not in the table.
func severity(id string) Severity {
	if s, known := severities[id]; known {
		return s
	}
	return Warning
}

var rulesOfAmplification = []Rule{
	{"F101", "One request becomes too many attempts", Error,
		"Retries of layers above each other multiply: three layers that try three times make 27 attempts at the service " +
			"that is down. The number is proved: it follows from what the files say, along a path that the finding names. " +
			"Calls that one request makes when nothing fails are in the number, but without a layer that repeats one of " +
			"them there is no finding. In an outage the service gets this load just when it can bear least, and it stays " +
			"down when the fault is gone.",
		"Google's SRE book, \"Addressing Cascading Failures\", on retries at several layers; Bronson et al., \"Metastable " +
			"Failures in Distributed Systems\" (HotOS 2021). The arithmetic is held against a test that plays random graphs.",
		"A service that is idle on most days, with a retry budget that keeps the average low. It is a warning where " +
			"budgets keep the average below the limit, or every layer of the path has one, where all attempts are connections " +
			"that nobody accepts, and where every retry of the path is a default for codes of gRPC only. It is " +
			"not said where no one way brings too much and only several do together that rest on addresses in " +
			"variables: who holds five addresses need not call all five for one request. Nor is it where one layer " +
			"alone repeats, without a count and with a budget, which is [F108](F108.md). Raise the limit " +
			"(--max-amplification) if you mean it.",
		"Let one layer of the path retry, the one that knows which calls may be repeated, and switch the others off. With " +
			"Abate, `retryOwner: nearest` makes of the product a sum."},
	{"F102", "One request may become too many attempts", Warning,
		"The proved number is within the limit, but it ends at a service of which nobody says what it answers when a call " +
			"of its own has failed. If it answers with something that the layers above retry, the factors multiply. The " +
			"number is the worst case: nothing can exceed it, unless a service speaks gRPC and " +
			"no file says so (`speaks: grpc`).",
		"See [F101](F101.md). Frameworks turn a failed call into a 500 unless somebody handles it, and many retry lists " +
			"have 500 in them.",
		"The service has a fallback, or answers with a code that nobody above retries. Say so, and the finding goes away.",
		"Write `answersWith` of the service into the topology: a status, `same` if it passes failures on, `\"200\"` if it " +
			"can do without. Numbers that could not be read count as the least that they can be; [F702](F702.md) names them."},
	{"F103", "Several layers retry the same call", Error,
		"The client library, the sidecar and the gateway all stand on one call, and each retries what the one inside of " +
			"it gave up: their tries multiply on a single call, which people do not see because each file looks modest. An " +
			"error if the product is above 4, else a warning.",
		"Envoy's and Istio's documentation of retries; threads such as istio/istio#50506 and dapr/dapr#4512, where calls " +
			"were sent twice.",
		"The layers retry different outcomes. Then they do not multiply, and this rule says nothing. A transport that " +
			"repeats what was never sent is not counted, nor is a sidecar that connects to its own application again.",
		"Keep the retries of the layer that knows idempotency, which is the library, and set the others to none (Istio: " +
			"`attempts: 0`)."},
	{"F104", "A healthy service is called again with the one that fails", Warning,
		"When a call fails, the whole request is tried again from above, and with it all other calls that it had made: a " +
			"healthy service gets a multiple of its load because another one is down.",
		"It follows from the order of calls; the factor is that of the retries above the last common caller.",
		"The other call is cheap, or cached. Without a known order of the calls the rule assumes that they are made " +
			"before the one that fails.",
		"Retry the call that failed where it is made, and not the whole request from above."},
	{"F105", "The load of an outage is above the capacity", Error,
		"The rate at the roots times the average factor comes to more than the service can do. While it is down everybody " +
			"retries, and when it comes back it is knocked over again: the outage holds itself up.",
		"Bronson et al., \"Metastable Failures in Distributed Systems\" (HotOS 2021).",
		"The capacity is a lower bound from metrics of quiet days. Say what it really is.",
		"A retry budget of 10 %, fewer tries above the service, or shedding in front of it. `abate sim` plays the outage " +
			"with each."},
	{"F106", "Calls go in a circle, with retries", Error,
		"Services call each other in a circle and retry. Nothing in the files bounds how often a request goes round, so " +
			"no other number is computed for what is behind the circle.",
		"The graph of calls, from configuration or traces.",
		"The circle is none: traces put two programs, or two endpoints of which only one calls back, under one name.",
		"Break the circle, or give the parts names of their own in the topology."},
	{"F107", "Retries that nobody wrote", Note,
		"A product retries by default: Istio and ingress-nginx add two tries, Kuma and Kong five, .NET's standard handler " +
			"three, nginx one with every further server. Nobody chose the number, and an update may change it. A warning if " +
			"the layer is part of a path that comes to too much.",
		"The documentation and source of each product; the finding names the product and the version whose default it took.",
		"The default is what you want. Write it down all the same, and the next version cannot change it. A gateway's " +
			"calls of pages for operators (`grafana`, `kiali`, `kibana` and the like, by their names) are left out, and so " +
			"are calls of programs that make load for a test (`loadgenerator`).",
		"Write the number of tries, or that there are none."},
	{"F108", "Retries without a count", Warning,
		"The tries are bounded by time or by a budget only, or by nothing (Dapr's `maxRetries: -1`, a ServiceProfile of " +
			"Linkerd, Google's generated clients). A service that refuses at once then gets as many tries as fit into the time.",
		"Dapr's resiliency documentation; linkerd.io on ServiceProfiles; AIP-4221.",
		"A consumer or a start-up loop that has nothing else to do, with a back-off that grows.",
		"Set a number of tries."},
	{"F109", "The graph of calls is too large to be followed to its end", Warning,
		"The ways through a dense graph of calls grow so fast that no machine can follow them all. An audit makes a " +
			"counted number of steps, the same on every machine, and then bounds what is left from what each layer can do " +
			"at most. Nothing is below what can happen, but numbers may be far above it. The finding says for how many " +
			"services that is so.",
		"The limit is `Work` of package lint, 8,000,000 steps; that is enough for most systems of 10,000 services that " +
			"call a few others each.",
		"You want to know whether anything is unbounded, and no more: that is seen all the same.",
		"Audit fewer services at once. Folders of examples and test data join into one system that nobody runs: name " +
			"the folders that are deployed."},
}

var rulesOfTime = []Rule{
	{"F201", "A try may take as long as the whole call", Warning,
		"The limit of one try is not below that of the whole call. A call that hangs uses up all the time with its first " +
			"try, so its retries exist on paper only.",
		"Envoy accepts it without a word; the defaults of Kuma's mesh have it (16 s for a try, 15 s for the request).",
		"Only failures that come quickly are meant to be retried. Then take hangs out of the list.",
		"Give a try less than the call's limit less the waits, divided by the number of tries."},
	{"F202", "Not all tries fit into the time", Warning,
		"The number of tries, times what each may take, with the waits between them, is more than the limit of the whole " +
			"call. Fewer tries than somebody wrote can begin when calls hang.",
		"The arithmetic was compared with Envoy and nginx, which cut in the same way.",
		"The tries are meant for failures that come quickly.",
		"Lower the number, or the limit of a try, or raise that of the call."},
	{"F203", "A caller leaves before the service can have answered", Warning,
		"The limit of a call is below what the service may need with the limits of its own calls. The caller leaves, and " +
			"often tries again, while the service is still at work on the first copy: work for nobody, and several copies of " +
			"one request at once. An error if the service is known not to stop when its caller leaves.",
		"Google's SRE book on deadlines (\"Deadline propagation\"); gRPC's guide to deadlines.",
		"Deadlines travel with the requests (gRPC, or Abate's headers), so that the inner calls are cut in time whatever " +
			"their own limits say.",
		"Let limits fall from the outside in: each layer gets less than the one that calls it, or propagate deadlines."},
	{"F204", "Nothing ends a call", Warning,
		"Neither the call nor any call above it has a limit of time. When the service hangs, callers wait for ever and " +
			"hold connections, threads and memory.",
		"Istio writes no time-out where none is set; nor do many clients.",
		"Streams, websockets and long polls: their limit is an idle limit. Where somebody wrote that there is none it is a " +
			"note. Limits that programs set in code are not seen. A gateway's calls of pages for operators (`grafana`, " +
			"`kiali`, `kibana` and the like, by their names) are left out, and so are " +
			"calls of programs that make load for a test (`loadgenerator`).",
		"Set a limit for the whole call at the outermost layer at least."},
	{"F205", "Retries without a limit for a try", Warning,
		"The layer is told to repeat a try that runs into its limit, and a try has none: it may take as long as the whole " +
			"call. A hang, which is what overload most often looks like, is then never retried.",
		"Envoy and all meshes on it; threads istio/istio#21137 and #13167, where retries \"did not work\".",
		"Only refused connections and quick answers are meant. Then take the words that stand for hangs out of the list.",
		"Set a limit for one try, above the 99th percentile of good answers."},
	{"F206", "A caller waits more than a minute for a service that hangs", Warning,
		"All tries and waits together come to more than a minute. No user and few programs wait that long; what is tried " +
			"then is work for nobody.",
		"The default limits of nginx and Kong are 60 s for each try, for several tries.",
		"Batch jobs and uploads. Nothing is said of websockets: routes with an upgrade whose limit somebody has written.",
		"Lower the limit of a try, or the number of tries."},
	{"F207", "Two hops have the same limit", Warning,
		"A service waits for its own call as long as its caller waits for it. When the inner call runs into its limit, " +
			"the outer one does so at the same moment: no time is left for an answer, a fallback or another try.",
		"The usual cause is one default for everything.",
		"Deadlines travel with the requests. Nothing is said of a proxy, which passes the answer on as it is.",
		"Take a little off at each hop."},
	{"F208", "A limit is below what good answers take", Warning,
		"The limit is below the measured 99th percentile of the service. More than one in a hundred good answers is " +
			"thrown away and asked for again: load out of nothing, and more when the service gets slower.",
		"The times come from metrics or traces; the finding says which.",
		"The measured times include retries or a bad day.",
		"Raise the limit above the 99th percentile, or hedge instead."},
	{"F209", "Tries go on after the caller has left", Warning,
		"The layer or service does not notice that its caller is gone, and goes on with its tries. During an outage most " +
			"of its work is for nobody. A layer that only opens connections again is not meant.",
		"Measured with HAProxy 2.6: it made all four tries after the client had left, with `option abortonclose` one.",
		"Writes that must be finished whether or not somebody waits.",
		"`option abortonclose` in HAProxy; pass contexts, deadlines or cancellation on in programs."},
}

var rulesOfOutcomes = []Rule{
	{"F301", "Requests that must not be repeated are repeated", Error,
		"POST and PATCH are tried again after a failure that may have come after the work was done: a 5xx, a reset " +
			"connection, the end of a try's limit of time. Then the order is placed, or the card charged, twice. An error " +
			"where a call is known to be unsafe (`unsafe: true`), else a warning.",
		"RFC 9110, section 9.2.2. Envoy, Istio, HAProxy's L7 retries, .NET's standard handler and resilience4j repeat " +
			"POST; nginx does not. Threads kubernetes/ingress-nginx#4174, dotnet/aspire#4631.",
		"GraphQL queries and searches that are POST; services that know an idempotency key (say `keyed: true` of the " +
			"call), or calls that are all reads (`unsafe: false`). Of instances of resilience4j and Polly only code says " +
			"whether what they guard writes, so there it is a note. Of databases and of components of Dapr it is said only of " +
			"calls that are known to be unsafe.",
		"Retry GET, HEAD, PUT and DELETE only, or refused connections only, or use idempotency keys."},
	{"F302", "Bugs are repeated", Note,
		"500 is in the list. Most often it is a bug or a bad request, which the next try meets again: load without a chance.",
		"Retry lists such as Envoy's `5xx` and Spring's `SERVER_ERROR` have it in them.",
		"A service that answers 500 for everything, overload included. Nothing is said of SDKs of AWS, which have no list, " +
			"nor of databases and components of Dapr, which have no statuses, nor of an exception of a program's own, of " +
			"which only code says what it is thrown for.",
		"Retry 502, 503 and 504."},
	{"F303", "Overload is answered with an immediate retry", Warning,
		"A service says 429, or RESOURCE_EXHAUSTED: less, please. The layer sends the request again at once and does not " +
			"look at `Retry-After`.",
		"RFC 6585 and RFC 9110 on `Retry-After`.",
		"The limit is one instance's own and the retry goes to another.",
		"Obey `Retry-After`, or wait, or do not retry it."},
	{"F304", "Conflicts of writes are repeated", Warning,
		"A 409 or another 4xx is the service's judgement of this request. The same request gets the same judgement, or " +
			"worse, a write that was refused for a reason goes through.",
		"Envoy's `retriable-4xx` is 409.",
		"Optimistic locks whose clients read anew before they write; a proxy does not. Of instances of resilience4j and " +
			"Polly only code says whether what they guard writes, so there it is a note, of any request. " +
			"Nothing is said of databases and of components of Dapr, which have no statuses.",
		"Take it out of the list for writes."},
	{"F305", "Codes that say nothing are repeated", Warning,
		"INTERNAL and UNKNOWN are mostly bugs. DEADLINE_EXCEEDED says that there is no time left, and that the work may " +
			"have been done.",
		"gRPC's guide to status codes: UNAVAILABLE is the one to retry.",
		"A service that is known to answer so for faults that pass. Nothing is said of services that are not known to " +
			"speak gRPC. Of a list of every failure nothing is said here: " +
			"nobody chose the codes, and [F302](F302.md) says what is wrong with it.",
		"Retry UNAVAILABLE only."},
	{"F307", "Callers may change retries and limits", Warning,
		"The proxy honours request headers that set its retries and time-outs (Envoy's `x-envoy-max-retries` for internal " +
			"addresses, Linkerd's `l5d-retry-limit`). Every number of this report then holds only while no caller asks for " +
			"more.",
		"Envoy's router documentation; `internal_address_config`.",
		"Only services of your own can reach the proxy, and they use it.",
		"Remove the permission, or the headers at the edge."},
}
