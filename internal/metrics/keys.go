package metrics

import (
	"time"

	"github.com/abate-go/abate/internal/series"
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
	forgottenDesc = series.NewDesc("abate_idempotency_forgotten_total",
		"Finished requests that were forgotten before their retention was over, because there was no room for new ones. "+
			"Each could have been repeated safely for longer; give the store more room.", withService(nil)...)
)

func collectKeys(send func(series.Sample), service string, u idempotency.Usage, retention time.Duration) {
	send(value(keysDesc, service, float64(u.Keys)))
	send(value(maxKeysDesc, service, float64(u.MaxKeys)))
	send(value(keyBytesDesc, service, float64(u.Bytes)))
	send(value(maxKeyBytesDesc, service, float64(u.MaxBytes)))
	send(value(retentionDesc, service, retention.Seconds()))
	send(value(heldDesc, service, u.Held(retention).Seconds()))
	send(series.Count(forgottenDesc, float64(u.Shortened.Keys), service))
}
