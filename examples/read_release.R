# Reads one release of tacit in R: values with their intervals, and what its certificate says.
#
#   Rscript read_release.R out/demo "people by region"
#
# Needs the package jsonlite. It compares the values with the digest in the certificate if the package digest is there.
library(jsonlite)

read_release <- function(folder, name) {
  stem <- gsub(" ", "-", name, fixed = TRUE)
  file <- file.path(folder, "values", paste0(stem, ".csv"))
  certificate <- fromJSON(file.path(folder, "certificates", paste0(stem, ".json")), simplifyVector = FALSE)
  if (requireNamespace("digest", quietly = TRUE) &&
      digest::digest(file, algo = "sha256", file = TRUE) != certificate$values$sha256) {
    stop("the values are not the ones of the certificate")
  }
  list(
    values = read.csv(file, check.names = FALSE, encoding = "UTF-8"),
    confidence = certificate$intervals$confidence,
    bound = certificate$guarantee$bound,
    unit = certificate$unit,
    meaning = certificate$meaning
  )
}

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) == 2) {
  release <- read_release(arguments[1], arguments[2])
  print(head(release$values))
  cat("rows:", nrow(release$values), "\n")
  cat("confidence of the intervals:", release$confidence, "\n")
  cat("protected:", release$unit, "\n")
}
