package lint

var rulesOfPace = []Rule{
	{"F401", "Tries follow each other at once", Warning,
		"More than two tries come without a wait between them, within a millisecond. Whatever the reason of the failure, " +
			"it is still there; the service gets a multiple of its load in one instant.",
		"nginx, HAProxy, Traefik without `initialInterval` and Spring Cloud Gateway do so by default. Measured with nginx " +
			"1.22: three tries in 1 ms.",
		"Fail-over: one further try at another server.",
		"Wait before a retry, longer each time, with full jitter; or try twice at most."},
	{"F402", "Waits without chance", Warning,
		"All clients wait for exactly the same time. Those that failed together come back together, again and again.",
		"Marc Brooker, \"Exponential Backoff and Jitter\" (AWS Architecture Blog, 2015).",
		"There is one client.",
		"Draw the wait at random: full jitter."},
	{"F403", "Nothing bounds the retries of all calls together", Warning,
		"There is no retry budget, and the cap on concurrent retries is so high that it is none (Istio lifts Envoy's cap " +
			"of 3; Envoy Gateway sets 1024), or the budget allows more retries than there are calls. In an outage every " +
			"request is then repeated as often as its own number allows.",
		"Measured with Envoy 1.40: fifty requests at once made 59 attempts with its default cap, 200 with the cap lifted, " +
			"65 with a budget of 20 %.",
		"Traffic so small that the service can take all of it several times.",
		"`retryBudget` (Istio 1.27, Gateway API, Envoy), 10 to 20 %."},
	{"F404", "A cap on concurrent retries permits a flood", Warning,
		"A cap counts retries that run at once. Where a try is over in a millisecond, a few at once are hundreds per " +
			"second: more than half of the calls again.",
		"Little's law: rate = concurrency ÷ time.",
		"The measured time is that of answers, and failures take longer.",
		"A budget in shares of the calls."},
	{"F405", "The floor of a budget is high for the fleet", Warning,
		"A budget always allows a few retries per second, for each instance. A hundred instances together may send more " +
			"than a tenth of what the service can do, whatever happens.",
		"Linkerd's ServiceProfile allows 10 per second by default.",
		"The instances seldom call at once.",
		"Lower the floor, or share it among the instances."},
	{"F406", "The same retry numbers everywhere", Note,
		"Three or more services have the same number of tries, first wait and limit, which somebody copied. Layers above " +
			"each other multiply, limits do not fall from the outside in, and all come back at the same moment.",
		"A common library or template with one default.",
		"The services do not call each other.",
		"Say for each chain which layer retries, and give inner calls less time."},
	{"F407", "The longest wait is below the first", Warning,
		"The cap of the waits is lower than the first wait, so the wait never grows: the back-off is a constant.",
		"Envoy refuses it; others take the cap without a word.",
		"A constant wait is meant. Then write it as one.",
		"Raise the cap, or lower the first wait."},
}

var rulesOfGuards = []Rule{
	{"F501", "A breaker that can never open", Warning,
		"The breaker needs more calls within its time than an instance makes, so it never has enough to judge by.",
		"resilience4j needs 100 calls by default: 99 failures leave it closed (measured with 2.3.0).",
		"The rate is that of a quiet day.",
		"Need fewer calls, or look at a longer time."},
	{"F502", "Retries end before the breaker closes again", Note,
		"All tries and waits of a call are over long before an open breaker lets anything through. Once it opens, the " +
			"tries that are left are refused, and the call sleeps for nothing.",
		"Measured with resilience4j: of ten tries two were sent and eight slept.",
		"A retry that knows a refusal of the breaker and stops.",
		"Do not retry the breaker's own refusal, or put it outside of the retries."},
	{"F503", "A fallback hides failures from the retries", Warning,
		"The fallback of an inner breaker answers, so the retry around it sees a success and never tries again.",
		"resilience4j/resilience4j#558 and #593; the order of filters in Spring Cloud Gateway, which is where it is seen.",
		"No retry is wanted where there is a fallback.",
		"Put the fallback on the outermost layer."},
	{"F504", "Ejection may take all endpoints", Warning,
		"Outlier detection may take all endpoints out, or one of two. When the fault is in something that all of them " +
			"need, the first to be ejected leave their load to the rest, and these follow.",
		"Envoy's default is at most 10 %; Istio switches the panic threshold off.",
		"A fall-back cluster takes over. It is a note where the product does it by default (nginx).",
		"At most half of the endpoints, and no ejection below three."},
	{"F505", "Nothing bounds what waits", Note,
		"There is no limit on requests, connections or what waits for them. When the service is slow, calls pile up in " +
			"the caller until it has no memory left.",
		"Istio writes 4294967295 where nothing is set.",
		"Another layer on the same call has a limit. A gateway's calls of pages for operators (`grafana`, `kiali`, " +
			"`kibana` and the like, by their names) are left out, and so are " +
			"calls of programs that make load for a test (`loadgenerator`).",
		"Bound the calls that run and wait: a bulkhead."},
}

var rulesOfFiles = []Rule{
	{"F601", "A word that nobody knows", Error,
		"A key or a word that the product does not know. Most drop it without a message, so what was meant does not happen.",
		"Envoy 1.40 validates `retry_on: \"5xxx\"` as OK; resilience4j 2 ignores the keys of version 1.",
		"A newer version knows the word. Say which version runs.",
		"Write the word that was meant."},
	{"F602", "A policy without effect", Warning,
		"The policy is there and does nothing: no condition says when to retry, nobody refers to it, it names another " +
			"gateway, or an earlier rule takes all requests.",
		"istio/istio#38180 and #37181, where retries of a gateway were expected between services.",
		"It is being prepared.",
		"Refer to it, or remove it."},
	{"F603", "Two settings that exclude each other", Error,
		"One of the two is dropped, and which one is not what people expect: a ServiceProfile of Linkerd switches off all " +
			"annotations; of two VirtualServices for a host one wins.",
		"The products' documentation.",
		"Never on purpose. It is a warning where the two stand in different files, which may not both be applied, and " +
			"not said of files of one folder for the same hosts, of which people apply one.",
		"Keep one."},
	{"F604", "A written 0 means something else", Error,
		"Zero was written to switch something off, and the product takes it for \"not set\": its default applies.",
		"Consul's `NumRetries: 0` is 1, Istio's `maxRetries: 0` is no cap, Contour's `count: 0` is 1.",
		"The default is what is wanted.",
		"Write what switches it off in this product; the finding says it."},
	{"F605", "A list that does not replace the default", Warning,
		"A narrower list was written beside a default that stays: Spring Cloud Gateway's `statuses` do not remove the " +
			"series of all 5xx.",
		"spring-cloud/spring-cloud-gateway#1536.",
		"Both are meant.",
		"Empty the default too (`series:`)."},
	{"F606", "A configuration that is refused, or dead", Error,
		"The program refuses the file, or the format has been switched off: then no policy is in force at all. grpc-go " +
			"throws the whole service config away if one key is missing.",
		"gRPC's service config proposal (A6); Envoy's v2 API.",
		"An old program still reads it.",
		"Complete it, or move it to the format of today."},
	{"F701", "A name or a call that does not fit", Note,
		"A name means several services, traces show a call of which no file says anything, or a policy is for a call that " +
			"nobody has seen.",
		"The rules by which names are joined are in package topology.",
		"Traces are samples.",
		"Write the name with its namespace, or the call into the topology."},
	{"F702", "A value that could not be read", Note,
		"A template, a variable or code stands where a number belongs. Everything that follows from it is unknown: \"at " +
			"least\".",
		"The file itself.",
		"The value is set at run time. Say what it usually is.",
		"Pass the rendered files (`helm template`), or give the value."},
}
