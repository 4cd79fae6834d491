package stale_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy/stale"
)

func TestARequestGetsOnlyTheVariantMadeForItsLike(t *testing.T) {
	s := stale.New(1 << 20)
	put(s, "/", lines("Accept-Language: de"), lines("Vary: Accept-Language, Accept"), "hallo", noon)
	put(s, "/", lines("Accept-Language: en"), lines("vary: accept-language", "VARY: ,Accept"), "hello", noon)
	put(s, "/", lines("Accept: a", "Accept-Language: en"), lines("Vary: Accept-Language,Accept"), "json", noon)
	expect(t, s, "/", lines("Accept-Language: de"), "hallo")
	expect(t, s, "/", lines("X: y", "ACCEPT-LANGUAGE: de"), "hallo")
	expect(t, s, "/", lines("Accept-Language: en"), "hello")
	expect(t, s, "/", lines("Accept-Language: en", "Accept: a"), "json")
	expect(t, s, "/", lines("Accept-Language: En"), "nothing")
	expect(t, s, "/", lines("Accept-Language: fr"), "nothing")
	expect(t, s, "/", lines("Accept-Language:"), "nothing") // empty is not absent
	expect(t, s, "/", lines("Accept-Language: de", "Accept-Language: de"), "nothing")
	expect(t, s, "/", lines("Accept: de"), "nothing")
	expect(t, s, "/", nil, "nothing")
	if s.Len() != 3 {
		t.Errorf("%d variants", s.Len())
	}
}

func TestAbsentMatchesAbsent(t *testing.T) {
	s := stale.New(1 << 20)
	put(s, "/", nil, lines("Vary: Accept-Language"), "plain", noon)
	expect(t, s, "/", lines("Accept: x"), "plain")
	expect(t, s, "/", lines("Accept-Language: de"), "nothing")
}

func TestValuesDoNotRunIntoEachOther(t *testing.T) {
	s := stale.New(1 << 20)
	put(s, "/", lines("A: xy", "B: z"), lines("Vary: A, B"), "1", noon)
	expect(t, s, "/", lines("A: x", "B: yz"), "nothing")
	expect(t, s, "/", lines("A: xyz", "B:"), "nothing")
	expect(t, s, "/", lines("A: x", "A: y", "B: z"), "nothing")
	expect(t, s, "/", lines("B: z", "A: xy"), "1")
	put(s, "/2", lines("A:"), lines("Vary: A, B"), "2", noon)
	expect(t, s, "/2", lines("B:"), "nothing")
}

func TestAnotherVaryReplacesAllVariants(t *testing.T) {
	s := stale.New(1 << 20)
	put(s, "/", nil, nil, "for all", noon)
	expect(t, s, "/", lines("Accept-Language: de"), "for all")
	put(s, "/", lines("Accept-Language: en"), lines("Vary: Accept-Language"), "hello", noon)
	put(s, "/", lines("Accept-Language: de"), lines("Vary: Accept-Language"), "hallo", noon)
	expect(t, s, "/", lines("Accept-Language: fr"), "nothing")
	put(s, "/", nil, nil, "late, but older", noon-time.Second)
	expect(t, s, "/", lines("Accept-Language: de"), "hallo")
	put(s, "/", lines("Accept-Language: en"), nil, "for all again", noon)
	expect(t, s, "/", lines("Accept-Language: de"), "for all again")
	if s.Len() != 1 {
		t.Errorf("%d variants", s.Len())
	}
}

func TestEncodedResponsesVaryThoughTheirServiceForgotToSaySo(t *testing.T) {
	s := stale.New(1 << 20)
	put(s, "/", lines("Accept-Encoding: gzip"), lines("Content-Encoding: gzip"), "zipped", noon)
	expect(t, s, "/", lines("Accept-Encoding: gzip"), "zipped")
	expect(t, s, "/", nil, "nothing")
	put(s, "/", lines("Accept-Encoding: gzip"), lines("Vary: Accept-Encoding", "Content-Encoding: gzip"),
		"zipped again", noon)
	expect(t, s, "/", lines("Accept-Encoding: gzip"), "zipped again")
	put(s, "/", nil, lines("Vary: Accept-Encoding"), "plain", noon)
	expect(t, s, "/", lines("Accept-Encoding: gzip"), "zipped again")
	expect(t, s, "/", nil, "plain")
}

func TestVariantsOfAResourceAreBounded(t *testing.T) {
	s := stale.New(1 << 20)
	language := func(i int) string { return fmt.Sprintf("Accept-Language: x%d", i) }
	for i := range 20 {
		put(s, "/", lines(language(i)), lines("Vary: Accept-Language"), fmt.Sprint(i), noon)
	}
	if s.Len() != 8 {
		t.Errorf("%d variants, want 8", s.Len())
	}
	for i := range 20 {
		want := "nothing"
		if i >= 12 {
			want = fmt.Sprint(i)
		}
		expect(t, s, "/", lines(language(i)), want)
	}
	put(s, "/", lines(language(15)), lines("Vary: Accept-Language"), "renewed", noon)
	expect(t, s, "/", lines(language(12)), "12")
	expect(t, s, "/", lines(language(15)), "renewed")
}
