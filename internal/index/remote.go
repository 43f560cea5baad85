package index

import (
	"context"
	"errors"
	"time"
)

// ErrTextRefused is wrapped by the error of an Embedder or a Reranker if the model will never accept one of the
// texts. The text may be too long or forbidden. Errors concerning the model, its address or its key do not wrap it.
var ErrTextRefused = errors.New("the text is refused")

// A RetryAfterError is an error that contains the time to wait before the next request; 0 means that the time is
// unknown.
type RetryAfterError interface {
	error
	RetryAfter() time.Duration
}

// A Reranker scores how well each text answers a question. Its model reads the question together with the text. A
// Reranker is safe for concurrent use.
type Reranker interface {
	// Rerank returns a score for each text, in the same order. A higher score is better. Scores of different calls
	// cannot be compared. If Rerank returns an error, it returns no scores.
	Rerank(ctx context.Context, question string, texts []string) ([]float64, error)
}

// A VectorForgetter is a VectorStore that can delete all vectors of a model. Without this method, the vectors of a
// replaced model remain in the store and are not read again.
type VectorForgetter interface {
	Forget(ctx context.Context, model string) error
}
