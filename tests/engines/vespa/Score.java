import ai.vespa.rankingexpression.importer.lightgbm.LightGBMImporter;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Answers {"functions": {name: expression}, "score": expression, or "trees": file, "rows": [{rank feature: number}]},
 * the files of the arguments, each with a line of scores: by Vespa's parser, importer of LightGBM's models, evaluator.
 */
public class Score {
  public static void main(String[] files) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    for (String file : files) {
      JsonNode given = mapper.readTree(new File(file));
      Map<String, RankingExpression> functions = new TreeMap<>();
      for (var entry : (Iterable<Map.Entry<String, JsonNode>>) () -> given.get("functions").fields())
        functions.put(entry.getKey(), new RankingExpression(entry.getKey(), entry.getValue().asText()));
      RankingExpression score = given.has("trees")
          ? new LightGBMImporter().importModel("trees", given.get("trees").asText()).expressions().values().iterator().next()
          : new RankingExpression("score", given.get("score").asText());
      List<Double> scores = new ArrayList<>();
      for (JsonNode row : given.get("rows")) {
        MapContext values = new MapContext(), results = new MapContext();
        row.fields().forEachRemaining(e -> values.put(e.getKey(), e.getValue().asDouble(Double.NaN)));
        row.fields().forEachRemaining(e -> results.put(e.getKey(), e.getValue().asDouble(Double.NaN)));
        functions.forEach((name, function) -> results.put(name, function.evaluate(values).asDouble()));
        scores.add(score.evaluate(results).asDouble());
      }
      System.out.println(mapper.writeValueAsString(scores));
    }
  }
}
