package transport_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

func TestReadTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := 0
		turn := transport.NewReadTurn(func() { taken++ })
		for range 1000 {
			if !turn.Do(func() { <-time.After(time.Millisecond) }) {
				t.Fatal("the turn was lost during short works")
			}
		}
		<-time.After(time.Second) // idle
		if !turn.Do(func() {}) || taken != 0 {
			t.Errorf("the turn was lost without a long work, %d were started", taken)
		}
		began := time.Now()
		if turn.Do(func() { <-time.After(time.Minute) }) || taken != 1 {
			t.Errorf("the turn was kept during a long work, %d were started", taken)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the work took %v", took)
		}
		if !turn.Do(func() {}) || taken != 1 {
			t.Errorf("the new turn was lost, %d were started", taken)
		}
	})
}
