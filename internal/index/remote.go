package index

import (
	"context"
	"errors"
	"time"
)

// ErrTextRefused is wrapped by the error of an Embedder or a Reranker that will never accept one of the texts: it is
// too long, or forbidden. Errors of the model, its address or its key are not of this kind.
var ErrTextRefused = errors.New("the text is refused")

// A RetryAfterError is an error that names how long to wait before the next request; 0 means no time is named.
type RetryAfterError interface {
	error
	RetryAfter() time.Duration
}

// A Reranker scores how well each text answers a question. It reads question and text together. It may be used from
// several goroutines.
type Reranker interface {
	// Rerank returns a score for each text, in the same order. A higher score is better; scores of different calls
	// cannot be compared. An error means that there are no scores.
	Rerank(ctx context.Context, question string, texts []string) ([]float64, error)
}

// A VectorForgetter is a vector store that can delete all it keeps of a model, or nothing. Another store keeps the
// vectors of a model that was replaced under the same name; they are then not read again.
type VectorForgetter interface {
	Forget(ctx context.Context, model string) error
}
