package index_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// TestEmbedderDown takes the model away: questions have no answer within the deadline, then at once; when it is back
// they have one.
func TestEmbedderDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(26)
		l, keys := ready(t, m, index.EmbeddingIndexOptions{})
		m.set(func(m *fakeModel) {
			m.before = func(context.Context, index.EmbedRole,
				[]string) error {
				return errors.New("connection refused")
			}
		})
		for i := range 5 {
			if near, err := soon(t, l, fmt.Sprint("question ", i), keys); err == nil {
				t.Error(near)
			}
		}
		if n := m.times(index.RoleQuery); n != 3 {
			t.Errorf("%d questions were sent to a model that is away", n)
		}
		s := l.Status()
		if s.Away.IsZero() || s.Err != "connection refused" || s.Missed != 3 {
			t.Errorf("%+v", s)
		}
		<-time.After(time.Hour)
		if n := m.times(index.RoleQuery); n < 10 || n > 3+70 {
			t.Errorf("it was looked %d times in an hour whether the model is back", n-3)
		}
		m.set(func(m *fakeModel) { m.before = nil })
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if near, err := soon(t, l, "question 0", keys); err != nil || len(near) != 3 {
			t.Error(near, err)
		}
		if s := l.Status(); !s.Away.IsZero() || s.Err != "" || s.Vectors != 8 {
			t.Errorf("%+v", s)
		}
	})
}

// TestEmbedderDownFromTheStart offers documents to a model that is not there yet.
func TestEmbedderDownFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(26)
		m.before = func(context.Context, index.EmbedRole, []string) error { return errors.New("connection refused") }
		l := runs(t, m, index.EmbeddingIndexOptions{Vectors: newVectors()})
		l.Offer(desk())
		<-time.After(time.Hour)
		if n := m.times(index.RoleDocument); n < 5 || n > 30 {
			t.Errorf("it was tried %d times in an hour", n)
		}
		if _, err := soon(t, l, "send mail", keysOf(desk())); err == nil {
			t.Error("there is an answer")
		}
		if s := l.Status(); s.Texts != 8 || s.Vectors != 0 || s.Away.IsZero() || s.Err != "connection refused" {
			t.Errorf("%+v", s)
		}
		m.set(func(m *fakeModel) { m.before = nil })
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if near, err := soon(t, l, "send mail", keysOf(desk())); err != nil || len(near) != 3 {
			t.Error(near, err)
		}
	})
}

// TestEmbedderSlow has a model that takes its time: documents are embedded all the same, and a question waits up to
// the deadline, a few times only.
func TestEmbedderSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(26)
		m.before = func(ctx context.Context, _ index.EmbedRole, _ []string) error {
			timer := time.NewTimer(2 * time.Second)
			defer timer.Stop()
			select {
			case <-timer.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		l := runs(t, m, index.EmbeddingIndexOptions{Batch: 2})
		l.Offer(desk())
		<-time.After(time.Minute)
		synctest.Wait()
		waited := 0
		for i := range 10 {
			began := time.Now()
			if near, err := soon(t, l, fmt.Sprint("question ", i), keysOf(desk())); err == nil {
				t.Error(near)
			}
			if time.Since(began) > 0 {
				waited++
			}
		}
		if s := l.Status(); waited != 3 || s.Vectors != 8 || s.Away.IsZero() || s.Err == "" {
			t.Errorf("%d questions waited; %+v", waited, s)
		}
	})
}

// TestWrongDimension has the model give one odd vector: the question has no answer, and what is kept stays.
func TestWrongDimension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, kept := newModel(26), forgetting{newVectors()}
		l, keys := ready(t, m, index.EmbeddingIndexOptions{Vectors: kept})
		odd := true
		m.set(func(m *fakeModel) {
			m.before = func(_ context.Context, of index.EmbedRole, _ []string) error {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.dimension = 26
				if odd && of == index.RoleQuery {
					m.dimension = 25
				}
				return nil
			}
		})
		if near, err := soon(t, l, "send mail", keys); err == nil {
			t.Error(near)
		}
		synctest.Wait()
		odd = false
		if near, err := soon(t, l, "send mail", keys); err != nil || len(near) != 3 {
			t.Error(near, err)
		}
		if s := l.Status(); s.Vectors != 8 || s.Replaced != 0 || kept.forgot != 0 ||
			m.times(index.RoleDocument) != 8+2 {
			t.Errorf("%+v", s)
		}
	})
}

// TestWrongDimensionOfDocuments has the model give odd vectors for a batch, which is tried again.
func TestWrongDimensionOfDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(26)
		m.before = func(_ context.Context, _ index.EmbedRole, texts []string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.dimension = 26
			if len(texts) > 1 && len(m.asked[index.RoleDocument]) < 10 {
				m.dimension = 25
			}
			return nil
		}
		l := runs(t, m, index.EmbeddingIndexOptions{})
		l.Offer(desk())
		synctest.Wait()
		if s := l.Status(); s.Vectors != 0 || s.Err != "the model returned vectors of 25 dimensions, and of 26 before" {
			t.Errorf("%+v", s)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if s := l.Status(); s.Vectors != 8 || s.Err != "" || s.Replaced != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestRefusedTexts has a model that takes some texts never: the others have their vectors.
func TestRefusedTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(26)
		m.before = func(_ context.Context, _ index.EmbedRole, texts []string) error {
			for _, text := range texts {
				if strings.Contains(text, "Weather") {
					return fmt.Errorf("it is too long: %w", index.ErrTextRefused)
				}
			}
			return nil
		}
		l := runs(t, m, index.EmbeddingIndexOptions{})
		docs := desk()
		for i := range 6 {
			docs = append(docs, tool("more", fmt.Sprint("tool", i), "something else "+strings.Repeat("x", i)))
		}
		l.Offer(docs)
		<-time.After(time.Hour)
		synctest.Wait()
		if s := l.Status(); s.Vectors != 13 || s.Refused != 1 || s.Texts != 14 || s.Err != "" || !s.Away.IsZero() {
			t.Errorf("%+v", s)
		}
		if near, err := soon(t, l, "send mail", keysOf(docs)); err != nil || len(near) != 3 {
			t.Error(near, err)
		}
		for range 5 { // what a model refuses does not speak against the model
			if near, err := soon(t, l, "Weather", keysOf(docs)); !errors.Is(err, index.ErrTextRefused) {
				t.Error(near, err)
			}
		}
		if _, err := soon(t, l, "send mail", keysOf(docs)[4:9]); err == nil {
			t.Error("one of five has no vector, and there is an answer")
		}
	})
}
