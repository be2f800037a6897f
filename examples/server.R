# Ask a tacit server from R (packages httr2 and jsonlite):
# SERVER=http://127.0.0.1:8484 TOKEN=tacit_... TABLE=survey Rscript server.R
library(httr2)

api <- function(path) {
  request(paste0(Sys.getenv("SERVER"), "/api/v1", path)) |>
    req_auth_bearer_token(Sys.getenv("TOKEN"))
}
question <- list(
  releases = list(list(kind = "count", by = "region")),
  spend = list(epsilon = 0.1)
)
path <- paste0("/tables/", Sys.getenv("TABLE"))

plan <- api(paste0(path, "/preview")) |> req_body_json(question) |> req_perform() |> resp_body_json()
cat(plan$text, "\n")

job <- api(paste0(path, "/release")) |> req_body_json(question) |> req_perform() |> resp_body_json()
repeat {
  status <- api(paste0("/jobs/", job$job)) |> req_perform() |> resp_body_json()
  if (!status$state %in% c("queued", "running")) break
  Sys.sleep(0.5)
}
stopifnot(status$state == "done")
answer <- api(paste0("/jobs/", job$job, "/answer")) |> req_perform() |> resp_body_json(simplifyVector = TRUE)
print(as.data.frame(answer$releases$columns))
