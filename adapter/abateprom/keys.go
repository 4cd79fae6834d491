package abateprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/abate-go/abate/policy/idempotency"
)

// What a store of idempotency keys says about itself, in memory or in a file. Redis and SQL databases have metrics of
// their own.
var (
	keysDesc = gauge("abate_idempotency_keys", "Idempotency keys that are remembered. Near "+
		"abate_idempotency_max_keys give the store more room: see abate_idempotency_held_seconds.")
	maxKeysDesc = gauge("abate_idempotency_max_keys",
		"Idempotency keys that there is room for, without their answers. New keys a second times "+
			"abate_idempotency_retention_seconds must stay below it.")
	keyBytesDesc = gauge("abate_idempotency_bytes", "What idempotency keys and their answers take up. It is no "+
		"trouble if this is at abate_idempotency_max_bytes: the oldest answers go first.")
	maxKeyBytesDesc = gauge("abate_idempotency_max_bytes", "The bound of that: maxMemory, or maxFile.")
	retentionDesc   = gauge("abate_idempotency_retention_seconds", "How long finished requests are to be remembered.")
	heldDesc        = gauge("abate_idempotency_held_seconds",
		"How long they are remembered in fact. Below abate_idempotency_retention_seconds the store was full and has "+
			"forgotten keys early: a repeat that comes later than this is done again. Raise maxMemory or maxFile, or name a "+
			"file.")
	forgottenDesc = gauge("abate_idempotency_forgotten_total",
		"Finished requests that were forgotten before their retention was over, because there was no room for new ones. "+
			"Each could have been repeated safely for longer; give the store more room.")
)

func collectKeys(to chan<- prometheus.Metric, service string, u idempotency.Usage, retention time.Duration) {
	to <- value(keysDesc, service, float64(u.Keys))
	to <- value(maxKeysDesc, service, float64(u.MaxKeys))
	to <- value(keyBytesDesc, service, float64(u.Bytes))
	to <- value(maxKeyBytesDesc, service, float64(u.MaxBytes))
	to <- value(retentionDesc, service, retention.Seconds())
	to <- value(heldDesc, service, u.Held(retention).Seconds())
	to <- prometheus.MustNewConstMetric(forgottenDesc, prometheus.CounterValue, float64(u.Shortened.Keys), service)
}
