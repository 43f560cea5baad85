package agent

import (
	"testing"
	"testing/synctest"
)

// TestAClosedEmitter waits for the event that another goroutine passes on, passes on what waits, and drops later events.
func TestAClosedEmitter(t *testing.T) { synctest.Test(t, testAClosedEmitter) }

func testAClosedEmitter(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	var got []string
	m := &emitter{on: func(e Event) {
		if e.Text == "slow" {
			close(begun)
			<-goOn
		}
		got = append(got, e.Text)
	}}
	go m.emit(Event{Text: "slow"})
	<-begun
	m.emit(Event{Text: "waits"})
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		m.close()
	}()
	synctest.Wait()
	select {
	case <-closed:
		t.Fatal("close returned while an event was passed on")
	default:
	}
	close(goOn)
	<-closed
	m.emit(Event{Text: "late"})
	if len(got) != 2 || got[0] != "slow" || got[1] != "waits" {
		t.Errorf("%q", got)
	}
}
