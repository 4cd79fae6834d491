package budget

// ShiftCounters makes the counters of b, which is new, stand at n.
func ShiftCounters(b *Budget, n int64) {
	b.deposited.Add(n)
	b.spent.Add(n)
	m := b.bank.mark()
	for i := range b.marks {
		b.marks[i] = m
	}
}
