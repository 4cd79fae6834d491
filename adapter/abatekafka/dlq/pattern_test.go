package dlq_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

func TestPatternLeavesOutWhatDiffers(t *testing.T) {
	for _, test := range [][2]string{
		{"dial tcp 10.0.0.17:5432: connect: connection refused", "dial tcp <n>:<n>: connect: connection refused"},
		{"timeout after 1,024.5 ms", "timeout after <n> ms"},
		{"order 4711 of cust-42 at 2026-01-31T10:20:30.123+01:00", "order <n> of cust-<n> at <time>"},
		{"2026-01-31 10:20:30,123 ERROR", "<time> ERROR"},
		{"on 2026-01-31 it broke", "on <time> it broke"},
		{"no row a8098c1a-f86e-11da-bd1a-00112444be1e in users", "no row <id> in users"},
		{`user "Ann O'Hara" not found, 'x y' neither`, `user "…" not found, '…' neither`},
		{"it's broken and can't be fixed", "it's broken and can't be fixed"},
		{"trace 4bf92f3577b34da6a3ce929d0e0e4736 at 0xc000123abc", "trace <hex> at <hex>"},
		{"sha256 of utf8 deadbeef", "sha<n> of utf<n> deadbeef"},
		{"session x7Kp92mQ4r", "session <id>"},
		{"a\n\t  b\x00c", "a bc"},
		{"Bestellung 12 für Zoë ungültig ٣", "Bestellung <n> für Zoë ungültig <n>"},
		{"", ""},
		{`an "open quote`, `an "open quote`},
	} {
		if got := dlq.Pattern(test[0]); got != test[1] {
			t.Errorf("%q: %q, not %q", test[0], got, test[1])
		}
	}
	if a, b := dlq.Pattern("cust-1 owes 7 €"), dlq.Pattern("cust-99999 owes 12.50 €"); a != b {
		t.Errorf("%q and %q", a, b)
	}
}

func TestTracePatternIsTheInnermostFrames(t *testing.T) {
	java := "org.springframework.kafka.listener.ListenerExecutionFailedException: Listener failed\n\tat " +
		"org.springframework.Adapter.invoke(Adapter.java:99)\n" +
		"Caused by: java.net.ConnectException: refused 10.0.0.1\n\tat com.shop.Bank.charge(Bank.java:42)\n\tat " +
		"com.shop.Order$1.handle(Order.java:7)\n\tat com.shop.Main.lambda$run$0(Main.java:1)\n\tat x.y.z(Z.java:1)\n\t... " +
		"12 more\n"
	goTrace := "goroutine 12 [running]:\nruntime/debug.Stack()\n\t/usr/lib/go/src/runtime/debug/stack.go:26 " +
		"+0x5e\npanic({0x1, 0x2})\n\t/usr/lib/go/src/runtime/panic.go:770 +0x132\n" +
		"example.com/shop.(*Bank).Charge(0xc000, {0x1, 0x2})\n\t/src/shop/bank.go:42 " +
		"+0x1d\nexample.com/shop.handle(...)\n\t/src/shop/handle.go:7\ncreated by main.main in goroutine " +
		"1\n\t/src/main.go:5 +0x3\n"
	for _, test := range [][2]string{
		{java, "com.shop.Bank.charge < com.shop.Order$<n>.handle < com.shop.Main.lambda$run$<n>"},
		{goTrace, "example.com/shop.(*Bank).Charge < example.com/shop.handle < created by main.main in goroutine <n>"},
		{"System.Exception: no\n   at Shop.Bank.Charge(Decimal x) in Bank.cs:line 42\n", "Shop.Bank.Charge"},
		{"just text\nin lines", ""},
		{"", ""},
	} {
		if got := dlq.TracePattern(test[0]); got != test[1] {
			t.Errorf("%q", got)
		}
	}
	if dlq.TracePattern(java) != dlq.TracePattern(strings.ReplaceAll(java, ":42", ":43")) {
		t.Error("a changed line number makes another group")
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"a 1 b", `"x" 'y' 0xff`, "2026-01-01T10:00:00Z", "a8098c1a-f86e-11da-bd1a-00112444be1e",
		"\tat a.b(c:1)\n", "\xff\xfe", "a(\n\tb:1\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range []string{dlq.Pattern(text), dlq.TracePattern(text)} {
			if len(p) > 300 || !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool {
				return unicode.IsDigit(r) || unicode.IsControl(r)
			}) {
				t.Errorf("%q makes %q", text, p)
			}
		}
	})
}
