package sandbox

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// TestAFreeSlotGoesToTheOwnerWithTheFewestScripts has one owner queue up before another.
func TestAFreeSlotGoesToTheOwnerWithTheFewestScripts(t *testing.T) {
	q := newSlotQueue(2)
	ctx := t.Context()
	for range 2 {
		if err := q.acquire(ctx, "many"); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan string)
	begin := func(owner string) {
		q.mu.Lock()
		before := len(q.waiting)
		q.mu.Unlock()
		go func() {
			if err := q.acquire(ctx, owner); err != nil {
				t.Error(err)
			}
			got <- owner
		}()
		for waiting := before; waiting == before; {
			q.mu.Lock()
			waiting = len(q.waiting)
			q.mu.Unlock()
		}
	}
	for _, owner := range []string{"many", "many", "many", "few"} {
		begin(owner)
	}
	var order []string
	for range 4 {
		q.release("many")
		order = append(order, <-got)
	}
	if want := []string{"few", "many", "many", "many"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

func TestAWaiterThatGivesUpTakesNoSlot(t *testing.T) {
	q := newSlotQueue(1)
	if err := q.acquire(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.acquire(ctx, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	q.release("a")
	q.wait()
	if q.free != 1 || len(q.running) != 0 || len(q.waiting) != 0 {
		t.Errorf("%+v", q)
	}
}
