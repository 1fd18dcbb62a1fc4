"""Parts of formats: payloads decoded in bulk with a fallback, lines, files of Arrow batches."""
