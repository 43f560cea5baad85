package index

import (
	"context"
	"errors"
	"time"
)

// ErrTextRefused is wrapped by the error of an Embedder or a Reranker that will not take one of the texts, however
// often it is asked: it is too long, or says what may not be said. What is wrong with the model, its address or its
// key is no such error.
var ErrTextRefused = errors.New("the text is refused")

// A RetryAfterError is an error that says how long to wait before anything is asked again; 0 is nothing said.
type RetryAfterError interface {
	error
	RetryAfter() time.Duration
}

// A Reranker reads a question and texts together, and says how well each answers. It may be used from several
// goroutines.
type Reranker interface {
	// Rerank returns a score for each text, in their order: the higher the better, to be compared with each other only.
	// An error means that none was made.
	Rerank(ctx context.Context, question string, texts []string) ([]float64, error)
}

// A VectorForgetter is a Vectors that lets go of what it keeps of a model, all or nothing. One that is none keeps the
// vectors of a model that is another now behind the same name; they are then not looked at again.
type VectorForgetter interface {
	Forget(ctx context.Context, model string) error
}
