package server

import (
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestOutbox shows who waits for room and who does not.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		full := make([]byte, maxOutboxBytes)
		if err := o.put(full, true); err != nil {
			t.Fatal(err)
		}
		if err := o.put([]byte("dropped"), false); err != nil {
			t.Errorf("what need not arrive: %v", err)
		}
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if err := o.put([]byte("kept"), true); err != nil {
				t.Errorf("what must arrive: %v", err)
			}
			o.close()
		})
		synctest.Wait()
		var got []byte
		o.run(func(b []byte) error { got = append(got, b...); return nil }, 0, nil)
		waiting.Wait()
		if want := string(full) + "kept"; string(got) != want {
			t.Errorf("%d bytes came out, want %d", len(got), len(want))
		}
		if err := o.put([]byte("late"), true); !errors.Is(err, errCallerGone) {
			t.Errorf("a closed box: %v", err)
		}
	})
}

// TestOutboxBeats shows signs of life where nothing is written, and the end when they do not arrive.
func TestOutboxBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		beats := 0
		o.run(nil, time.Second, func() error {
			if beats++; beats == 3 {
				return io.ErrClosedPipe
			}
			return nil
		})
		if err := o.put([]byte("x"), true); beats != 3 || !errors.Is(err, errCallerGone) {
			t.Errorf("%d beats, then %v", beats, err)
		}
	})
}

// TestOutboxAtOnce has what finds an empty box go out at once, and nothing go out before what was put in earlier.
func TestOutboxAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		var direct, written string
		able := true
		o.tryWrite = func(b []byte) bool {
			if able {
				direct += string(b)
			}
			return able
		}
		put := func(text string) {
			if err := o.put([]byte(text), true); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		stuck := make(chan struct{})
		var running sync.WaitGroup
		put("a")
		running.Go(func() {
			o.run(func(b []byte) error {
				<-stuck
				written += string(b)
				return nil
			}, 0, nil)
		})
		synctest.Wait()
		put("b")
		able = false
		put("c") // the other end does not read
		synctest.Wait()
		able = true
		put("d") // c is under way
		put("e") // d waits
		close(stuck)
		synctest.Wait()
		put("f")
		o.close()
		running.Wait()
		if direct != "abf" || written != "cde" {
			t.Errorf("%q went out at once, %q was left to the writer", direct, written)
		}
	})
}
