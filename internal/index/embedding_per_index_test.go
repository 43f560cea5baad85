package index_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// TestNobodyHearsWhatOthersAsked has two indexes ask one library the same, one after the other and at once: what one
// asked is quick when it asks again, and for the other it takes as long as if nobody had; until the model is another.
func TestNobodyHearsWhatOthersAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(26)
		l, _ := ready(t, m, index.EmbeddingIndexOptions{})
		one, other := index.New(index.Options{Remote: l}), index.New(index.Options{Remote: l})
		one.Update(desk(), nil)
		other.Update(desk(), nil)
		m.set(func(m *fakeModel) {
			m.before = func(ctx context.Context, of index.EmbedRole, _ []string) error {
				if of == index.RoleQuery {
					<-time.After(100 * time.Millisecond)
				}
				return ctx.Err()
			}
		})
		asks := func(who string, x *index.Index, question string, want time.Duration) {
			t.Helper()
			began := time.Now()
			if hits := find(x, question, 3); len(hits) == 0 || hits[0].Far == 0 {
				t.Errorf("%s: the model had no part in %v", who, hits)
			}
			if took := time.Since(began); took != want {
				t.Errorf("%s asks %q: it takes %v, want %v", who, question, took, want)
			}
		}
		const slow = 100 * time.Millisecond
		asks("one", one, "send mail", slow)
		asks("one again", one, "send mail", 0)
		asks("the other", other, "send mail", slow)
		asks("the other again", other, "send mail", 0)
		var group sync.WaitGroup
		group.Go(func() { asks("one at once", one, "read a file", slow) })
		<-time.After(slow / 2)
		asks("the other at once", other, "read a file", slow)
		group.Wait()
		if err := l.ForgetVectors(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		asks("one of the next model", one, "send mail", slow)
		asks("the other of the next model", other, "send mail", slow)
	})
}

// TestOfferedWhileTheModelIsAway has texts come while nobody embeds: they are taken in all the same.
func TestOfferedWhileTheModelIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(26)
		m.before = func(context.Context, index.EmbedRole, []string) error { return errors.New("no credit") }
		l := runs(t, m, index.EmbeddingIndexOptions{})
		l.Offer(desk())
		synctest.Wait()
		if s := l.Status(); s.Away.IsZero() || s.Texts != 8 {
			t.Fatalf("%+v", s)
		}
		l.Offer([]index.Document{tool("more", "tool", "that came later"), desk()[0]})
		synctest.Wait()
		if s := l.Status(); s.Texts != 9 || s.Vectors != 0 {
			t.Errorf("%+v", s)
		}
	})
}
