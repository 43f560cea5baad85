//go:build bench

package bench

import "testing"

// BenchmarkCall makes the small call over each way, one after the other.
func BenchmarkCall(b *testing.B) {
	w := prepare(b, 1, false, small)
	for _, c := range w.all() {
		b.Run(c.name, func(b *testing.B) { repeat(b, c) })
	}
}

// BenchmarkLarge makes the call with 256 KiB in its result.
func BenchmarkLarge(b *testing.B) {
	w := prepare(b, 1, false, func(prefix string) request { return large(prefix, 256<<10) })
	for _, c := range w.all() {
		b.Run(c.name, func(b *testing.B) { b.SetBytes(256 << 10); repeat(b, c) })
	}
}

func (w *ways) all() []contender {
	return []contender{w.directHTTP, w.viaStdio, w.naiveHTTP, w.reverseHTTP, w.viaHTTP, w.directStdio, w.stdioStdio,
		w.relayBytes, w.relayInline, w.relayHand}
}

func repeat(b *testing.B, c contender) {
	for b.Loop() {
		if _, err := c.clients[0].call(c.request); err != nil {
			b.Fatal(err)
		}
	}
}
